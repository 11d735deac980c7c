-- Queries of TradingView's charting library.

-- name: symbol(market_key)^
-- The facts of a symbol's description.
select slug, question, status, as_unix(end_time), coalesce(tick_size, 10000)
from markets where market_key = :market_key;

-- name: seconds(market_key, outcome, step, since, until, limit)^
-- The newest bars of a range, column by column, made of trades; and how many they are.
select json_build_object(
    's', 'ok',
    't', json_agg(as_unix(bucket) order by bucket),
    'o', json_agg(as_number(open) order by bucket),
    'h', json_agg(as_number(high) order by bucket),
    'l', json_agg(as_number(low) order by bucket),
    'c', json_agg(as_number(close) order by bucket),
    'v', json_agg(as_number(volume) order by bucket)
)::text, count(*)
from (
    select
        time_bucket(:step::interval, ts) as bucket,
        first(price, seq) as open, max(price) as high, min(price) as low, last(price, seq) as close, sum(size)::bigint as volume
    from trades
    where market_key = :market_key and outcome = :outcome and ts >= :since and ts < :until
    group by 1
    order by 1 desc
    limit :limit
) as bars;

-- name: minutes(market_key, outcome, step, since, until, limit)^
-- The same, made of minutes.
select json_build_object(
    's', 'ok',
    't', json_agg(as_unix(start) order by start),
    'o', json_agg(as_number(open) order by start),
    'h', json_agg(as_number(high) order by start),
    'l', json_agg(as_number(low) order by start),
    'c', json_agg(as_number(close) order by start),
    'v', json_agg(as_number(volume) order by start)
)::text, count(*)
from (
    select
        time_bucket(:step::interval, bucket) as start,
        first(open, first_seq) as open, max(high) as high, min(low) as low, last(close, last_seq) as close, sum(volume)::bigint as volume
    from candles_1m
    where market_key = :market_key and outcome = :outcome and bucket >= :since and bucket < :until
    group by 1
    order by 1 desc
    limit :limit
) as bars;

-- name: hours(market_key, outcome, step, since, until, limit)^
-- The same, made of hours.
select json_build_object(
    's', 'ok',
    't', json_agg(as_unix(start) order by start),
    'o', json_agg(as_number(open) order by start),
    'h', json_agg(as_number(high) order by start),
    'l', json_agg(as_number(low) order by start),
    'c', json_agg(as_number(close) order by start),
    'v', json_agg(as_number(volume) order by start)
)::text, count(*)
from (
    select
        time_bucket(:step::interval, bucket) as start,
        first(open, first_seq) as open, max(high) as high, min(low) as low, last(close, last_seq) as close, sum(volume)::bigint as volume
    from candles_1h
    where market_key = :market_key and outcome = :outcome and bucket >= :since and bucket < :until
    group by 1
    order by 1 desc
    limit :limit
) as bars;

-- name: last_trade(market_key, outcome, until)$
-- When the last trade before a moment was.
select as_unix(ts)
from trades
where market_key = :market_key and outcome = :outcome and ts < :until
order by ts desc
limit 1;

-- name: quotes(symbols, market_keys, outcomes, traded)
-- Quotes of symbols, now, and compared with 24 hours ago. A resolved symbol's price is its payout; bid and ask are given while
-- the price is live. `traded` are the outcomes that the trades are listed as; of another one the prices are a dollar less.
select json_build_object('s', 'ok', 'n', given.symbol, 'v', json_strip_nulls(json_build_object(
    'ch', as_number(now.price - s.open),
    'chp', round((now.price - s.open) * 100.0 / nullif(s.open, 0), 2)::float8,
    'short_name', given.symbol,
    'exchange', initcap(m.exchange),
    'description', m.question,
    'lp', as_number(now.price),
    'ask', as_number(live.ask),
    'bid', as_number(live.bid),
    'spread', as_number(live.ask - live.bid),
    'open_price', as_number(s.open),
    'high_price', as_number(s.high),
    'low_price', as_number(s.low),
    'prev_close_price', as_number(s.open),
    'volume', as_number(s.volume)
)))::text
from unnest(:symbols::text[], :market_keys::integer[], :outcomes::integer[], :traded::integer[])
    with ordinality as given (symbol, market_key, outcome, traded, place)
join markets m using (market_key)
left join live_prices p on p.market_key = given.market_key and p.outcome = given.outcome
left join live_books b on b.market_key = given.market_key and b.outcome = given.outcome
left join lateral (  -- by its key, symbol for symbol: PostgreSQL 15 would read the table whole
    select * from market_stats_24h s where s.market_key = given.market_key and s.outcome = given.traded limit 1
) as stats on true
cross join lateral (
    select
        case when given.traded = given.outcome then stats.open else 1000000 - stats.open end as open,
        case when given.traded = given.outcome then stats.high else 1000000 - stats.low end as high,
        case when given.traded = given.outcome then stats.low else 1000000 - stats.high end as low,
        case when given.traded = given.outcome then stats.close else 1000000 - stats.close end as close,
        case when given.traded = given.outcome then p.last else 1000000 - traded.last end as last,
        stats.volume
    from (values (0)) as one
    left join live_prices traded on traded.market_key = given.market_key and traded.outcome = given.traded
) as s
left join lateral (
    select p.bid, p.ask, p.mid where m.status = 'ACTIVE' and b.verified and m.exchange = any ((select live_exchanges())::text[])
) as live on true
cross join lateral (
    select case when m.status = 'RESOLVED' then m.outcome_prices[given.outcome + 1] else coalesce(s.last, s.close, live.mid) end as price
) as now
order by given.place;

-- name: marks(market_key, traded, is_other, since, until, most, looked_at, least_usd)
-- Changes of a market's state, and the largest of the newest trades of an outcome; or, as seen by the other one, which was sold
-- when this one was bought, and is worth the rest of a dollar a share.
select id, time, color, text, label
from (
    select
        's' || change_id as id, as_unix(ts) as time, case to_status when 'RESOLVED' then 'green' else 'yellow' end as color,
        'The market is ' || to_status as text, left(to_status, 1) as label
    from market_status_changes
    where market_key = :market_key and ts >= :since and ts < :until
    union all
    (
        select
            't' || trade_id, as_unix(ts), case when side > 0 then 'blue' else 'red' end,
            case when side > 0 then 'Bought for ' else 'Sold for ' end || round(value_usd / 1000000.0) || ' USD',
            case when side > 0 then 'B' else 'S' end
        from (
            select
                trade_id, ts, case when :is_other then -side else side end as side,
                case when :is_other then size - value_usd else value_usd end as value_usd
            from trades
            where market_key = :market_key and outcome = :traded and ts >= :since and ts < :until
            order by ts desc
            limit :looked_at
        ) as newest
        where value_usd >= :least_usd
        order by value_usd desc
        limit :most
    )
) as marks
order by time;

-- name: milestones(market_key, since, until)
-- When a market began, ends and was resolved.
select id, time, color, label, tooltip
from (
    select m.created_at, m.end_time, m.resolved_at, m.outcomes, m.winning_outcome from markets m where m.market_key = :market_key
) as m
cross join lateral (
    values
        ('listed', as_unix(m.created_at), 'blue', 'L', 'Listed'),
        ('end', as_unix(m.end_time), 'yellow', 'E', 'Planned end'),
        ('resolved', as_unix(m.resolved_at), 'green', 'R', concat_ws(': ', 'Resolved', m.outcomes[m.winning_outcome + 1]))
) as mark (id, time, color, label, tooltip)
where time >= as_unix(:since) and time < as_unix(:until)
order by time;
