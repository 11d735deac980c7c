-- Trades of a market.

-- name: of_outcome(market_key, outcome, market_id, token_id, since, until, limit)^
-- The newest trades of one outcome within a range, and how many they are.
select coalesce(json_agg(t), '[]')::text, count(*)
from (
    select
        trade_id::text as id,
        :market_id::text as market_id,
        :token_id::text as token_id,
        outcome,
        as_number(price) as price,
        as_number(size) as size,
        as_number(value_usd) as value_usd,
        case when side > 0 then 'BUY' else 'SELL' end as side,
        '0x' || encode(tx_hash, 'hex') as tx_hash,
        as_ms(ts) as ts
    from trades
    where market_key = :market_key and outcome = :outcome and ts >= :since and ts < :until
    order by trades.ts desc, seq desc
    limit :limit
) as t;
