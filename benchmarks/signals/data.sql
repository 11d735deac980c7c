-- An hour of a busy exchange, and the day before it: so many active markets, those that traded in the day, and in the last hour.
-- Trading volume is heavy-tailed. Times end at the analysed minute.

select setseed(0.5);

insert into markets (market_id, slug, question, status, outcomes, token_ids, outcome_prices)
select '0x' || lpad(to_hex(n), 64, '0'), 'market-' || n, 'Market ' || n || '?', 'ACTIVE', '{Yes,No}', array[n || '0', n || '1'], '{}'
from generate_series(1, {markets}) as n;

set session_replication_role = replica; -- no triggers: candles are made at once, below

-- The last 65 minutes: {recent} markets, on average 60 trades each.
insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd)
select
    ts, m, (random() < 0.3)::int, n, (extract(epoch from ts) * 1000)::bigint << 20 | n & 1048575, 1, price, 50000000, price * 50
from (
    select
        row_number() over () as n, m, '{at}'::timestamptz - random() * interval '65 minutes' as ts,
        ((0.2 + (m % 60) / 100.0 + (random() - 0.5) / 50) * 1000)::bigint * 1000 as price
    from generate_series(1, {recent}) as m,
        lateral generate_series(1, least(5000, (6 * power(random() + m * 0, -0.9))::int)) as i
) as made;

-- The day before that: {traded} markets, on average 60 trades each; the recent ones had six times as many.
insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd)
select
    ts, m, (random() < 0.3)::int, n, (extract(epoch from ts) * 1000)::bigint << 20 | n & 1048575, 1, price, 50000000, price * 50
from (
    select
        1000000000 + row_number() over () as n, m,
        '{at}'::timestamptz - interval '65 minutes' - random() * interval '24 hours' as ts,
        ((0.2 + (m % 60) / 100.0 + (random() - 0.5) / 50) * 1000)::bigint * 1000 as price
    from generate_series(1, {traded}) as m,
        lateral generate_series(
            1, least(20000, (case when m <= {recent} then 36 else 6 end * power(random() + m * 0, -0.9))::int)
        ) as i
) as made;

-- candles: only where triggers keep them
insert into candles_1m (bucket, market_key, outcome, open, high, low, close, volume, value_usd, trades, first_seq, last_seq)
select time_bucket('1 minute', ts) as bucket, market_key, outcome, first(price, seq), max(price), min(price), last(price, seq),
       sum(size), sum(value_usd), count(*), min(seq), max(seq)
from trades group by 1, 2, 3;
insert into candles_1h (bucket, market_key, outcome, open, high, low, close, volume, value_usd, trades, first_seq, last_seq)
select time_bucket('1 hour', ts) as bucket, market_key, outcome, first(price, seq), max(price), min(price), last(price, seq),
       sum(size), sum(value_usd), count(*), min(seq), max(seq)
from trades group by 1, 2, 3;
-- end of candles

-- Best prices of both outcomes: on average 130 changes in the last 65 minutes for a trading market, and 10 a day for any other.
insert into quotes (ts, market_key, outcome, bid, ask, mid)
select ts, m, outcome, bid, bid + width, bid + width / 2
from (
    select
        m, outcome, '{at}'::timestamptz - random() * case when m <= {recent} then interval '65 minutes' else interval '1 day' end as ts,
        ((0.2 + (m % 60) / 100.0 + (random() - 0.5) / 50) * 1000)::bigint * 1000 as bid,
        case when m % 100 = 0 then 60000 else 10000 end as width
    from generate_series(1, {markets}) as m, generate_series(0, 1) as outcome,
        lateral generate_series(1, case when m <= {recent} then 130 else 10 end) as i
) as made
on conflict do nothing;

-- Books: a snapshot with each trade, and ten level changes in between.
insert into book_events (ts, market_key, outcome, event_id, seq, bid_prices, bid_sizes, ask_prices, ask_sizes)
select
    ts, market_key, outcome, trade_id, seq, array(select price - i * 10000 from generate_series(1, 20) as i),
    array(select (random() * 1e9)::bigint from generate_series(1, 20) where market_key > 0),
    array(select price + i * 10000 from generate_series(1, 20) as i),
    array(select (random() * 1e9)::bigint from generate_series(1, 20) where market_key > 0)
from trades where ts >= '{at}'::timestamptz - interval '90 minutes';
insert into book_events (ts, market_key, outcome, event_id, seq, side, price, size)
select t.ts + i * interval '1 millisecond', t.market_key, t.outcome, 2000000000 + t.trade_id * 16 + i, t.seq + i, 1, 500000, 1000000
from trades t, generate_series(1, 10) as i
where t.ts >= '{at}'::timestamptz - interval '90 minutes';

update stage_clocks set last_data_at = '{at}' where stage = 'ingestion';
analyze markets;
analyze trades;
analyze quotes;
analyze book_events;
analyze candles_1m;
analyze candles_1h;
set session_replication_role = origin;
