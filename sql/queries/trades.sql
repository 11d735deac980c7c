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

-- name: of_market(market_key, since, until, limit)^
-- The same of all outcomes of a market, read by index for each, then merged.
select coalesce(json_agg(t), '[]')::text, count(*)
from (
    select
        newest.trade_id::text as id,
        m.market_id,
        m.token_ids[newest.outcome + 1] as token_id,
        newest.outcome,
        as_number(newest.price) as price,
        as_number(newest.size) as size,
        as_number(newest.value_usd) as value_usd,
        case when newest.side > 0 then 'BUY' else 'SELL' end as side,
        '0x' || encode(newest.tx_hash, 'hex') as tx_hash,
        as_ms(newest.ts) as ts
    from markets m
    cross join generate_series(0, cardinality(m.outcomes) - 1) as place
    cross join lateral (
        select * from trades
        where market_key = :market_key and outcome = place and ts >= :since and ts < :until
        order by ts desc, seq desc
        limit :limit
    ) as newest
    where m.market_key = :market_key
    order by newest.ts desc, newest.seq desc
    limit :limit
) as t;

-- name: recent(exchange, since, until, limit)^
-- The newest trades of all markets of an exchange within a range, and how many they are. Only settlements show who traded.
select coalesce(json_agg(json_build_object(
    'id', t.trade_id::text,
    'market_id', m.market_id,
    'token_id', m.token_ids[t.outcome + 1],
    'outcome', t.outcome,
    'price', as_number(t.price),
    'size', as_number(t.size),
    'value_usd', as_number(t.value_usd),
    'side', case when t.side > 0 then 'BUY' else 'SELL' end,
    'tx_hash', '0x' || encode(t.tx_hash, 'hex'),
    'ts', as_ms(t.ts),
    'maker', coalesce(s.maker, ''),
    'taker', coalesce(s.taker, ''),
    'makers', coalesce(s.makers, '[]'),
    'block_number', s.block_number
) order by t.ts desc, t.seq desc), '[]')::text, count(*)
from (
    select t.* from trades t
    where t.ts >= :since and t.ts < :until and exists (select from markets m where m.market_key = t.market_key and m.exchange = :exchange)
    order by t.ts desc, t.seq desc
    limit :limit
) as t
cross join lateral (select market_id, token_ids from markets where market_key = t.market_key offset 0) as m
left join lateral settled_by(m.token_ids[t.outcome + 1], t.ts, t.tx_hash, t.size) as s on t.tx_hash is not null;

-- name: recent_of_market(market_key, outcome, since, until, limit)^
-- The same for one outcome of a market or, if that is null, for all, read by index for each, then merged.
select coalesce(json_agg(json_build_object(
    'id', t.trade_id::text,
    'market_id', t.market_id,
    'token_id', t.token_ids[t.outcome + 1],
    'outcome', t.outcome,
    'price', as_number(t.price),
    'size', as_number(t.size),
    'value_usd', as_number(t.value_usd),
    'side', case when t.side > 0 then 'BUY' else 'SELL' end,
    'tx_hash', '0x' || encode(t.tx_hash, 'hex'),
    'ts', as_ms(t.ts),
    'maker', coalesce(s.maker, ''),
    'taker', coalesce(s.taker, ''),
    'makers', coalesce(s.makers, '[]'),
    'block_number', s.block_number
) order by t.ts desc, t.seq desc), '[]')::text, count(*)
from (
    select m.market_id, m.token_ids, newest.*
    from (select * from markets where market_key = :market_key offset 0) as m
    cross join generate_series(0, cardinality(m.outcomes) - 1) as place
    cross join lateral (
        select * from trades
        where market_key = :market_key and outcome = place and ts >= :since and ts < :until
        order by ts desc, seq desc
        limit :limit
    ) as newest
    where :outcome::integer is null or place = :outcome::integer
    order by newest.ts desc, newest.seq desc
    limit :limit
) as t
left join lateral settled_by(t.token_ids[t.outcome + 1], t.ts, t.tx_hash, t.size) as s on t.tx_hash is not null;
