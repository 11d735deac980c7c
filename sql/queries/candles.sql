-- Candles of a market and outcome: read from the trades (1s), the minutes (1m, 5m) and the hours (1h), never computed elsewhere.

-- name: of_1s(market_key, outcome, since, until, limit)^
-- The newest seconds with trades of a range, oldest first, and how many they are.
select coalesce(json_agg(c order by ts), '[]')::text, count(*)
from (
    select
        as_ms(bucket) as ts,
        as_number(open) as open,
        as_number(high) as high,
        as_number(low) as low,
        as_number(close) as close,
        as_number(volume) as volume,
        as_number(value_usd) as volume_usd,
        trades
    from (
        select
            time_bucket('1 second', ts) as bucket,
            first(price, seq) as open, max(price) as high, min(price) as low, last(price, seq) as close,
            sum(size)::bigint as volume, sum(value_usd)::bigint as value_usd, count(*) as trades
        from trades
        where market_key = :market_key and outcome = :outcome and ts >= :since and ts < :until
        group by 1
    ) as seconds
    order by bucket desc
    limit :limit
) as c;

-- name: of_1m(market_key, outcome, since, until, limit)^
-- The newest minutes with trades of a range, oldest first, and how many they are.
select coalesce(json_agg(c order by ts), '[]')::text, count(*)
from (
    select
        as_ms(bucket) as ts,
        as_number(open) as open,
        as_number(high) as high,
        as_number(low) as low,
        as_number(close) as close,
        as_number(volume) as volume,
        as_number(value_usd) as volume_usd,
        trades
    from candles_1m
    where market_key = :market_key and outcome = :outcome and bucket >= :since and bucket < :until
    order by bucket desc
    limit :limit
) as c;

-- name: of_5m(market_key, outcome, since, until, limit)^
-- The newest five minutes with trades of a range, oldest first, and how many they are.
select coalesce(json_agg(c order by ts), '[]')::text, count(*)
from (
    select
        as_ms(bucket) as ts,
        as_number(open) as open,
        as_number(high) as high,
        as_number(low) as low,
        as_number(close) as close,
        as_number(volume) as volume,
        as_number(value_usd) as volume_usd,
        trades
    from (
        select
            time_bucket('5 minutes', bucket) as bucket,
            first(open, first_seq) as open, max(high) as high, min(low) as low, last(close, last_seq) as close,
            sum(volume)::bigint as volume, sum(value_usd)::bigint as value_usd, sum(trades)::bigint as trades
        from candles_1m
        where market_key = :market_key and outcome = :outcome and bucket >= :since and bucket < :until
        group by 1
    ) as fives
    order by bucket desc
    limit :limit
) as c;

-- name: of_1h(market_key, outcome, since, until, limit)^
-- The newest hours with trades of a range, oldest first, and how many they are.
select coalesce(json_agg(c order by ts), '[]')::text, count(*)
from (
    select
        as_ms(bucket) as ts,
        as_number(open) as open,
        as_number(high) as high,
        as_number(low) as low,
        as_number(close) as close,
        as_number(volume) as volume,
        as_number(value_usd) as volume_usd,
        trades
    from candles_1h
    where market_key = :market_key and outcome = :outcome and bucket >= :since and bucket < :until
    order by bucket desc
    limit :limit
) as c;

-- name: filled(resolution, step, market_key, outcome, since, until)$
-- Every bucket of a range, oldest first; one without trades repeats the close before it, and none is older than the first
-- close.
with found as (
    select bucket, open, high, low, close, volume, value_usd, trades
    from candles_1h
    where :resolution::text = '1h' and market_key = :market_key and outcome = :outcome and bucket >= :since and bucket < :until
    union all
    select
        time_bucket(:step::interval, bucket), first(open, first_seq), max(high), min(low), last(close, last_seq),
        sum(volume)::bigint, sum(value_usd)::bigint, sum(trades)::bigint
    from candles_1m
    where :resolution::text in ('1m', '5m') and market_key = :market_key and outcome = :outcome and bucket >= :since and bucket < :until
    group by 1
    union all
    select
        time_bucket('1 second', ts), first(price, seq), max(price), min(price), last(price, seq),
        sum(size)::bigint, sum(value_usd)::bigint, count(*)
    from trades
    where :resolution::text = '1s' and market_key = :market_key and outcome = :outcome and ts >= :since and ts < :until
    group by 1
),
before as (
    select coalesce(
        (
            select price from trades
            where market_key = :market_key and outcome = :outcome and ts < :since and ts >= :since::timestamptz - interval '1 hour'
            order by ts desc, seq desc limit 1
        ),
        (
            select close from candles_1h
            where market_key = :market_key and outcome = :outcome
                and bucket <= :since::timestamptz - interval '1 hour' and bucket >= :since::timestamptz - interval '366 days'
            order by bucket desc limit 1
        )
    ) as close
),
grid as (
    select slot.bucket, f.open, f.high, f.low, f.close, f.volume, f.value_usd, f.trades,
        count(f.close) over (order by slot.bucket) as run
    from generate_series(:since::timestamptz, :until::timestamptz - interval '1 microsecond', :step::interval) as slot (bucket)
    left join found f on f.bucket = slot.bucket
),
carried as (
    select *, coalesce(first_value(close) over (partition by run order by bucket), (select close from before)) as held from grid
)
select coalesce(json_agg(json_build_object(
    'ts', as_ms(bucket),
    'open', as_number(coalesce(open, held)),
    'high', as_number(coalesce(high, held)),
    'low', as_number(coalesce(low, held)),
    'close', as_number(coalesce(close, held)),
    'volume', as_number(coalesce(volume, 0)),
    'volume_usd', as_number(coalesce(value_usd, 0)),
    'trades', coalesce(trades, 0)
) order by bucket), '[]')::text
from carried
where held is not null;

-- name: last_bars_1m(market_key, outcome, since, until)$
-- When the last bar of a range begins.
select as_unix(bucket)
from candles_1m
where market_key = :market_key and outcome = :outcome and bucket >= :since and bucket < :until
order by bucket desc
limit 1;

-- name: last_bars_1h(market_key, outcome, since, until)$
-- When the last bar of a range begins.
select as_unix(bucket)
from candles_1h
where market_key = :market_key and outcome = :outcome and bucket >= :since and bucket < :until
order by bucket desc
limit 1;
