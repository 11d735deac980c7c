-- The release before knows gaps of one exchange: it would hold the other's against its markets, and ask Polymarket to fill them.
delete from coverage_gaps
where exchange <> 'polymarket' or market_key in (select market_key from markets where exchange <> 'polymarket');

delete from stage_clocks where stage = 'ingestion_kalshi';

-- A view that is replaced keeps its columns.
drop view analytics.coverage_gaps;

create view analytics.coverage_gaps as
select g.kind, m.market_id, m.slug, g.from_ts, g.to_ts, g.cause, g.filled_at, g.filled_by
from coverage_gaps g
left join markets m using (market_key);

comment on view analytics.coverage_gaps is 'What is known to be missing, one row a gap';

comment on column analytics.coverage_gaps.kind is 'trades or books';

comment on column analytics.coverage_gaps.market_id is 'Market; null: all of them';

comment on column analytics.coverage_gaps.slug is 'Market, readable';

comment on column analytics.coverage_gaps.from_ts is 'Since when, UTC';

comment on column analytics.coverage_gaps.to_ts is 'Until when; null: still open';

comment on column analytics.coverage_gaps.cause is 'Why';

comment on column analytics.coverage_gaps.filled_at is 'When it was filled in; null: not yet, or never';

comment on column analytics.coverage_gaps.filled_by is 'By what';

drop view coverage_gap_records;

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
    null::bigint as from_block, null::bigint as to_block, shard, shards
from coverage_gaps
union all
select *, null, null from chain_holes;

alter table coverage_gaps drop column exchange;
