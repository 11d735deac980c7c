create view analytics.trades as
select
    t.ts, m.market_id, m.slug, t.outcome, m.outcomes[t.outcome + 1] as outcome_name,
    case when t.side > 0 then 'BUY' else 'SELL' end as side,
    t.price * 0.000001 as price, t.size * 0.000001 as size, t.value_usd * 0.000001 as value_usd,
    '0x' || encode(t.tx_hash, 'hex') as tx_hash, t.trade_id, t.seq, m.exchange
from trades t
join markets m using (market_key);
comment on view analytics.trades is 'The exchange''s tape, one row a trade; always say from when on (ts)';
comment on column analytics.trades.ts is 'When, UTC';
comment on column analytics.trades.market_id is 'Market';
comment on column analytics.trades.slug is 'Market, readable';
comment on column analytics.trades.outcome is 'Number of the outcome, from 0';
comment on column analytics.trades.outcome_name is 'Name of the outcome';
comment on column analytics.trades.side is 'What the taker did: BUY or SELL';
comment on column analytics.trades.price is 'USD a share, 0 to 1';
comment on column analytics.trades.size is 'Shares';
comment on column analytics.trades.value_usd is 'price × size';
comment on column analytics.trades.tx_hash is 'Transaction that settles it; null while unknown';
comment on column analytics.trades.trade_id is 'What the trade is called; the same from every source';
comment on column analytics.trades.seq is 'Order within an instant';
comment on column analytics.trades.exchange is 'The exchange of the market: polymarket or kalshi';
