-- Coverage gaps by exchange, and the clock of a second exchange's feed.
alter table coverage_gaps add column exchange text not null default 'polymarket';

comment on column coverage_gaps.exchange is 'Of a gap without a market: of which exchange''s';

create or replace view coverage_gap_records as
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

create or replace view analytics.coverage_gaps as
select
    g.kind, m.market_id, m.slug, g.from_ts, g.to_ts, g.cause, g.filled_at, g.filled_by,
    coalesce(m.exchange, g.exchange) as exchange  -- a gap's own is that of gaps without a market
from coverage_gaps g
left join markets m using (market_key);

comment on column analytics.coverage_gaps.market_id is 'Market; null: all of the exchange';

comment on column analytics.coverage_gaps.exchange is 'The exchange of the market, or of all that are concerned: polymarket or kalshi';

insert into stage_clocks (stage, warn_after_s, fail_after_s, detail) values
    ('ingestion_kalshi', 15, 60, '{"off": "Kalshi is not recorded"}');
