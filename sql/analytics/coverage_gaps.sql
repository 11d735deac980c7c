create view analytics.coverage_gaps as
select
    g.kind, m.market_id, m.slug, g.from_ts, g.to_ts, g.cause, g.filled_at, g.filled_by, g.exchange
from coverage_gaps g
left join markets m using (market_key);
comment on view analytics.coverage_gaps is 'What is known to be missing, one row a gap';
comment on column analytics.coverage_gaps.kind is 'trades or books';
comment on column analytics.coverage_gaps.market_id is 'Market; null: all of the exchange';
comment on column analytics.coverage_gaps.slug is 'Market, readable';
comment on column analytics.coverage_gaps.from_ts is 'Since when, UTC';
comment on column analytics.coverage_gaps.to_ts is 'Until when; null: still open';
comment on column analytics.coverage_gaps.cause is 'Why';
comment on column analytics.coverage_gaps.filled_at is 'When it was filled in; null: not yet, or never';
comment on column analytics.coverage_gaps.filled_by is 'By what';
comment on column analytics.coverage_gaps.exchange is 'The exchange of the market, or of all that are concerned: polymarket or kalshi';
