-- History of some outcomes in order of time. Time ranges are (after, upto].

-- name: outcomes(token_ids)
-- Facts of outcomes needed for a replay, by their tokens, such as the market's ids and its current state.
select t.token_id, m.market_id, t.market_key, t.outcome, m.tick_size, m.neg_risk, m.raw ->> 'orderMinSize'
from unnest(:token_ids::text[]) as asked (token_id)
join tokens t using (token_id)
join markets m using (market_key);

-- name: of_markets(ids)
-- The same of all outcomes of markets, named by condition id, slug or the exchange's number.
select t.token_id, m.market_id, t.market_key, t.outcome, m.tick_size, m.neg_risk, m.raw ->> 'orderMinSize'
from markets m
join tokens t using (market_key)
where m.market_id = any(:ids::text[]) or m.slug = any(:ids::text[]) or m.gamma_id = any(:ids::text[])
order by t.market_key, t.outcome;

-- name: book_events(market_keys, outcomes, after, upto, most)
-- Book events stored as rows, by the position of their outcome among those requested, from 1; at most this many.
select p.n::int, as_us(e.ts), e.seq, e.side, e.price, e.size, e.bid_prices, e.bid_sizes, e.ask_prices, e.ask_sizes, e.hash
from unnest(:market_keys::int[], :outcomes::smallint[]) with ordinality as p (market_key, outcome, n)
cross join lateral (
    select * from book_events
    where market_key = p.market_key and outcome = p.outcome and ts > :after::timestamptz and ts <= :upto::timestamptz
) as e
limit :most;

-- name: trades(market_keys, outcomes, after, upto, most)
-- Trades; at most this many.
select p.n::int, as_us(e.ts), e.seq, e.trade_id, e.side, e.price, e.size, e.value_usd, e.tx_hash
from unnest(:market_keys::int[], :outcomes::smallint[]) with ordinality as p (market_key, outcome, n)
cross join lateral (
    select * from trades
    where market_key = p.market_key and outcome = p.outcome and ts > :after::timestamptz and ts <= :upto::timestamptz
) as e
limit :most;

-- name: tick_sizes(market_keys, outcomes, after, upto)
-- Changes of tick size.
select p.n::int, as_us(t.ts), t.before, t.tick_size
from unnest(:market_keys::int[], :outcomes::smallint[]) with ordinality as p (market_key, outcome, n)
join tick_sizes t using (market_key, outcome)
where t.ts > :after::timestamptz and t.ts <= :upto::timestamptz;

-- name: tick_size_at(market_key, outcome, at)
-- The tick size of an outcome at an instant, as far as changes show.
select coalesce(
    (
        select tick_size from tick_sizes
        where market_key = :market_key and outcome = :outcome and ts <= :at::timestamptz
        order by ts desc
        limit 1
    ),
    (
        select before from tick_sizes
        where market_key = :market_key and outcome = :outcome and ts > :at::timestamptz
        order by ts
        limit 1
    )
);

-- name: last_trade(market_key, outcome, at)
-- The price and instant of the last trade up to an instant, of the week before it.
select price, as_ms(ts)
from trades
where market_key = :market_key and outcome = :outcome and ts <= :at::timestamptz and ts > :at::timestamptz - interval '7 days'
order by ts desc, seq desc
limit 1;

-- name: next_instant(market_keys, outcomes, after)
-- The next instant at which anything happened, or may have, so that quiet periods are skipped.
select min(e.ts)
from unnest(:market_keys::int[], :outcomes::smallint[]) as p (market_key, outcome)
cross join lateral (
    (
        select ts from book_events
        where market_key = p.market_key and outcome = p.outcome and ts > :after::timestamptz
        order by ts
        limit 1
    )
    union all
    (
        select greatest(ts, :after::timestamptz + interval '1 microsecond') from book_packs
        where market_key = p.market_key and outcome = p.outcome and until_ts > :after::timestamptz
            and ts > :after::timestamptz - interval '1 day' -- none is longer
        order by ts
        limit 1
    )
    union all
    (
        select ts from trades
        where market_key = p.market_key and outcome = p.outcome and ts > :after::timestamptz
        order by ts
        limit 1
    )
    union all
    select ts from tick_sizes where market_key = p.market_key and outcome = p.outcome and ts > :after::timestamptz
) as e;
