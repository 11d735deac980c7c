-- What wallets' figures rest on, in words.
create view wallet_coverage as
select
    case
        when r.from_block is null then 'No settlements have been indexed yet.'
        else format(
            'From what was settled on chain from block %s (%s) to block %s (%s)%s: fills, splits, merges, conversions, redemptions '
            'and transfers. What a wallet had before that is not known.',
            r.from_block, to_char(r.from_ts at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'),
            r.to_block, to_char(r.to_ts at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'),
            case when r.holes > 0 then format(', without %s stretches in between that are not indexed', r.holes) else '' end
        )
    end as note
from (
    select
        -- Rows, and what is known of ranges, are dropped after their time; what positions were made from is remembered.
        least(h.from_block, c.from_block) as from_block, c.to_block, c.holes,
        least(h.from_ts, (select ts from chain_blocks where number >= c.from_block order by number limit 1)) as from_ts,
        (select ts from chain_blocks where number <= c.to_block order by number desc limit 1) as to_ts
    from positions_head h
    cross join (
        select min(from_block) as from_block, max(to_block) as to_block, count(*) - 1 as holes from chain_ranges
    ) as c
) as r;
