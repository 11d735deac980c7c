create view analytics.candles_1h as
select
    c.bucket, m.market_id, m.slug, c.outcome, m.outcomes[c.outcome + 1] as outcome_name,
    c.open * 0.000001 as open, c.high * 0.000001 as high, c.low * 0.000001 as low, c.close * 0.000001 as close,
    c.volume * 0.000001 as volume, c.value_usd * 0.000001 as value_usd, c.trades, m.exchange
from candles_1h c
join markets m using (market_key);
comment on view analytics.candles_1h is 'Prices by the hour, one row an outcome and hour with trades; always say from when on (bucket)';
comment on column analytics.candles_1h.bucket is 'Start of the hour, UTC';
comment on column analytics.candles_1h.market_id is 'Market';
comment on column analytics.candles_1h.slug is 'Market, readable';
comment on column analytics.candles_1h.outcome is 'Number of the outcome, from 0';
comment on column analytics.candles_1h.outcome_name is 'Name of the outcome';
comment on column analytics.candles_1h.open is 'Price of the first trade';
comment on column analytics.candles_1h.high is 'Highest price';
comment on column analytics.candles_1h.low is 'Lowest price';
comment on column analytics.candles_1h.close is 'Price of the last trade';
comment on column analytics.candles_1h.volume is 'Shares traded';
comment on column analytics.candles_1h.value_usd is 'USD traded';
comment on column analytics.candles_1h.trades is 'How many trades';
comment on column analytics.candles_1h.exchange is 'The exchange of the market: polymarket or kalshi';
