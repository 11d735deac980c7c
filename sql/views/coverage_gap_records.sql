-- Everything that is known to be missing, or was: what the feed noted, and the stretches of the chain that are not indexed (any more).
-- `place` orders what begins at the same instant.
create view coverage_gap_records as
select
    gap_id as place, gap_id::text as id, kind, market_key, from_ts, to_ts, cause,
    case
        when filled_at is not null then 'filled'
        when to_ts is null then 'open'
        when kind = 'trades' then 'fillable'  -- the exchange lists its trades for ever; what its books were, nobody tells
        else 'lost'
    end as status,
    filled_at, filled_by,
    coalesce((detail ->> 'trades')::bigint, 0) + coalesce((detail ->> 'events')::bigint, 0) as added,
    detail ->> 'fault' as fault,
    null::bigint as from_block, null::bigint as to_block
from coverage_gaps
union all
select
    -from_block, format('blocks %s-%s', from_block, to_block), 'settlements', null, coalesce(below, above), above,
    'not indexed yet', 'fillable', null, null, 0, null, from_block, to_block
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
