create view analytics.candles_1m as
select
    c.bucket, m.market_id, m.slug, c.outcome, m.outcomes[c.outcome + 1] as outcome_name,
    c.open * 0.000001 as open, c.high * 0.000001 as high, c.low * 0.000001 as low, c.close * 0.000001 as close,
    c.volume * 0.000001 as volume, c.value_usd * 0.000001 as value_usd, c.trades, m.exchange
from candles_1m c
join markets m using (market_key);
comment on view analytics.candles_1m is 'Prices by the minute, one row an outcome and minute with trades; always say from when on (bucket)';
comment on column analytics.candles_1m.bucket is 'Start of the minute, UTC';
comment on column analytics.candles_1m.market_id is 'Market';
comment on column analytics.candles_1m.slug is 'Market, readable';
comment on column analytics.candles_1m.outcome is 'Number of the outcome, from 0';
comment on column analytics.candles_1m.outcome_name is 'Name of the outcome';
comment on column analytics.candles_1m.open is 'Price of the first trade';
comment on column analytics.candles_1m.high is 'Highest price';
comment on column analytics.candles_1m.low is 'Lowest price';
comment on column analytics.candles_1m.close is 'Price of the last trade';
comment on column analytics.candles_1m.volume is 'Shares traded';
comment on column analytics.candles_1m.value_usd is 'USD traded';
comment on column analytics.candles_1m.trades is 'How many trades';
comment on column analytics.candles_1m.exchange is 'The exchange of the market: polymarket or kalshi';
