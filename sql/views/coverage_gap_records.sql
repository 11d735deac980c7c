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
    null::bigint as from_block, null::bigint as to_block, shard, shards, exchange
from coverage_gaps
union all
select *, null, null, 'polymarket' from chain_holes;
