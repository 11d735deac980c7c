create view analytics.settlements as
select
    s.ts, s.block_number, s.log_index, '0x' || encode(s.tx_hash, 'hex') as tx_hash, m.market_id, m.slug, c.token_id, t.outcome,
    m.outcomes[t.outcome + 1] as outcome_name, '0x' || encode(s.maker, 'hex') as maker, '0x' || encode(s.taker, 'hex') as taker,
    case when s.side > 0 then 'BUY' else 'SELL' end as side, s.price * 0.000001 as price, s.size * 0.000001 as size,
    s.value_usd * 0.000001 as value_usd, s.fee_usd * 0.000001 as fee_usd, s.is_taker_order, s.counted
from settlements s
join chain_tokens c using (token_key)
left join tokens t using (token_id)
left join markets m using (market_key);
comment on view analytics.settlements is 'Fills as the chain settled them, one row an order of a match; always say from when on (ts)';
comment on column analytics.settlements.ts is 'The block''s instant, UTC';
comment on column analytics.settlements.block_number is 'Block';
comment on column analytics.settlements.log_index is 'Place in the block';
comment on column analytics.settlements.tx_hash is 'Transaction';
comment on column analytics.settlements.market_id is 'Market; null while the catalogue does not know the token';
comment on column analytics.settlements.slug is 'Market, readable';
comment on column analytics.settlements.token_id is 'Token of the outcome: a decimal number as text';
comment on column analytics.settlements.outcome is 'Number of the outcome, from 0';
comment on column analytics.settlements.outcome_name is 'Name of the outcome';
comment on column analytics.settlements.maker is 'Wallet that owns the order of this row';
comment on column analytics.settlements.taker is 'Other side; in the taker''s own row the exchange''s contract';
comment on column analytics.settlements.side is 'What the order''s owner did: BUY or SELL';
comment on column analytics.settlements.price is 'USD a share, 0 to 1; null where there are no shares';
comment on column analytics.settlements.size is 'Shares';
comment on column analytics.settlements.value_usd is 'USD';
comment on column analytics.settlements.fee_usd is 'Fee that the order''s owner paid, in USD';
comment on column analytics.settlements.is_taker_order is 'Whether this is the taker''s own row of the match';
comment on column analytics.settlements.counted is 'Sum only rows that are: each match is counted once';
