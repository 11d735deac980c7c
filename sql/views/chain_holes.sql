-- Stretches of the chain that are not indexed (any more), as gaps.
create view chain_holes as
select
    -from_block as place, format('blocks %s-%s', from_block, to_block) as id, 'settlements' as kind, null::int as market_key,
    coalesce(below, above) as from_ts, above as to_ts, 'not indexed yet' as cause, 'fillable' as status, null::timestamptz as filled_at,
    null::text as filled_by, 0::bigint as added, null::text as fault, from_block, to_block
from (
    select
        lower(hole) as from_block, upper(hole) - 1 as to_block,
        (select ts from chain_blocks where number < lower(hole) order by number desc limit 1) as below,
        coalesce((select ts from chain_blocks where number >= upper(hole) order by number limit 1), now()) as above
    from (
        select
            greatest(
                least((detail ->> 'start')::bigint, (select min(from_block) from chain_ranges)), (detail ->> 'floor')::bigint
            ) as first,
            indexed
        from chain_heads
        where feed = 'settlement'
    ) as followed
    cross join lateral unnest(
        case when first <= indexed then int8multirange(int8range(first, indexed, '[]')) else '{}' end
        - (select coalesce(range_agg(int8range(from_block, to_block, '[]')), '{}') from chain_ranges)
    ) as hole
) as holes;
