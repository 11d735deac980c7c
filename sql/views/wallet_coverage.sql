-- What wallets' figures rest on, in words.
create view wallet_coverage as
select
    case
        when r.from_block is null then 'No settlements have been indexed yet.'
        else format(
            'From what was settled on chain in blocks %s to %s (%s to %s UTC)%s: fills, splits, merges, conversions, redemptions '
            'and transfers. What a wallet had before that is not known.',
            r.from_block, r.to_block, to_char(r.from_ts at time zone 'UTC', 'YYYY-MM-DD HH24:MI'),
            to_char(r.to_ts at time zone 'UTC', 'YYYY-MM-DD HH24:MI'),
            case when r.holes > 0 then format(', without %s stretches in between that are not indexed', r.holes) else '' end
        )
    end as note
from (
    select
        min(from_block) as from_block, max(to_block) as to_block, count(*) - 1 as holes,
        (select ts from chain_blocks where number >= (select min(from_block) from chain_ranges) order by number limit 1) as from_ts,
        (select ts from chain_blocks where number <= (select max(to_block) from chain_ranges) order by number desc limit 1) as to_ts
    from chain_ranges
) as r;
