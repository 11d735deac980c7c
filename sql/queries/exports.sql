-- Exported days, and their files. Data is copied as CSV: a query's columns are the file's columns, in their order. Sorted, so that the
-- same data gives the same file.

-- name: markets(to_ts, exchange)
-- Every market of an exchange listed by the end of the day, in its state when the file is written.
select
    market_id, slug, question, status, category, event_id, event_title, series, to_json(tags)::text as tags,
    to_json(outcomes)::text as outcomes, to_json(token_ids)::text as token_ids,
    to_json(array(select as_number(price) from unnest(outcome_prices) with ordinality as o (price, nth) order by nth))::text as outcome_prices,
    start_time, end_time, created_at, closed_at, resolved_at, winning_outcome, as_number(volume_usd) as volume_usd,
    as_number(liquidity_usd) as liquidity_usd, as_number(tick_size) as tick_size, neg_risk, source, first_seen_at, updated_at
from markets
where exchange = :exchange and coalesce(created_at, first_seen_at) < :to_ts
order by market_key;

-- name: trades(from_ts, to_ts, exchange)
-- The exchange's tape.
select
    t.ts, m.market_id, m.slug, t.outcome, m.outcomes[t.outcome + 1] as outcome_name, m.token_ids[t.outcome + 1] as token_id,
    case when t.side > 0 then 'BUY' else 'SELL' end as side, as_number(t.price) as price, as_number(t.size) as size,
    as_number(t.value_usd) as value_usd, '0x' || encode(t.tx_hash, 'hex') as tx_hash, t.trade_id, t.seq
from trades t
join markets m using (market_key)
where m.exchange = :exchange and t.ts >= :from_ts and t.ts < :to_ts
order by t.ts, t.seq, t.market_key, t.outcome, t.trade_id;

-- name: candles(from_ts, to_ts, exchange)
-- Candles of a minute, those with trades.
select
    c.bucket as ts, m.market_id, m.slug, c.outcome, m.outcomes[c.outcome + 1] as outcome_name, as_number(c.open) as open,
    as_number(c.high) as high, as_number(c.low) as low, as_number(c.close) as close, as_number(c.volume) as volume,
    as_number(c.value_usd) as value_usd, c.trades
from candles_1m c
join markets m using (market_key)
where m.exchange = :exchange and c.bucket >= :from_ts and c.bucket < :to_ts
order by c.bucket, c.market_key, c.outcome;

-- name: settlements(from_ts, to_ts)
-- Fills as the chain settled them.
select
    s.ts, s.block_number, s.log_index, '0x' || encode(s.tx_hash, 'hex') as tx_hash, m.market_id, m.slug, c.token_id, t.outcome,
    m.outcomes[t.outcome + 1] as outcome_name, '0x' || encode(s.maker, 'hex') as maker, '0x' || encode(s.taker, 'hex') as taker,
    case when s.side > 0 then 'BUY' else 'SELL' end as side, as_number(s.price) as price, as_number(s.size) as size,
    as_number(s.value_usd) as value_usd, as_number(s.fee_usd) as fee_usd, s.is_taker_order, s.counted
from settlements s
join chain_tokens c using (token_key)
left join tokens t using (token_id)
left join markets m using (market_key)
where s.ts >= :from_ts and s.ts < :to_ts
order by s.block_number, s.log_index;

-- name: book_events(from_ts, to_ts, exchange)
-- Order book events: full books (snapshot) and changed levels (delta), packed ones included.
select
    e.ts, m.market_id, m.slug, e.outcome, m.outcomes[e.outcome + 1] as outcome_name,
    case when e.side is null then 'snapshot' else 'delta' end as kind,
    case when e.side > 0 then 'bid' when e.side < 0 then 'ask' end as side, as_number(e.price) as price, as_number(e.size) as size,
    case when e.side is null then to_json(array(select array[as_number(l.price), as_number(l.size)] from unnest(e.bid_prices, e.bid_sizes) with ordinality as l (price, size, nth) order by l.nth))::text end as bids,
    case when e.side is null then to_json(array(select array[as_number(l.price), as_number(l.size)] from unnest(e.ask_prices, e.ask_sizes) with ordinality as l (price, size, nth) order by l.nth))::text end as asks,
    encode(e.hash, 'hex') as hash, e.seq
from (
    select ts, market_key, outcome, seq, side, price, size, bid_prices, bid_sizes, ask_prices, ask_sizes, hash
    from book_events
    where ts >= :from_ts and ts < :to_ts
    union all
    select ts, market_key, outcome, seq, side, price, size, bid_prices, bid_sizes, ask_prices, ask_sizes, hash
    from unpacked_events
    where ts >= :from_ts and ts < :to_ts
) as e
join markets m using (market_key)
where m.exchange = :exchange
order by e.ts, e.seq, e.market_key, e.outcome, e.side nulls first, e.price;

-- name: make_room#
-- The temporary table for packed book events during an export.
create temp table if not exists unpacked_events (
    ts timestamptz, market_key int, outcome smallint, seq bigint, side smallint, price int, size bigint,
    bid_prices int[], bid_sizes bigint[], ask_prices int[], ask_sizes bigint[], hash bytea
) on commit delete rows;

-- name: packs(from_ts, to_ts, exchange)
-- Packs of an exchange, or of all, with events in a time range: market, outcome, pack.
select p.market_key, p.outcome, p.data
from book_packs p
join markets m using (market_key)
where (:exchange::text is null or m.exchange = :exchange) and p.ts < :to_ts and p.until_ts >= :from_ts and p.ts >= :from_ts::timestamptz - interval '1 day'  -- none is longer
order by p.market_key, p.outcome, p.ts;

-- name: alone(topic)!
-- Serialises exports of a topic, until the connection ends.
select pg_advisory_lock(hashtextextended('presage.exports.' || :topic, 0));

-- name: written(topic, day)
-- The existing files of a day: part, format, file, rows, bytes, digest, whether it is complete, when it was written.
select part, format, file, rows, bytes, sha256, complete, created_at from exports
where topic = :topic and day = :day
order by part, format;

-- name: put(topic, day, part, format, file, rows, bytes, sha256, complete)!
-- Records a file.
insert into exports (topic, day, part, format, file, rows, bytes, sha256, complete, created_at)
values (:topic, :day, :part, :format, :file, :rows, :bytes, :sha256, :complete, now())
on conflict (topic, day, part, format) do update set
    file = excluded.file, rows = excluded.rows, bytes = excluded.bytes, sha256 = excluded.sha256, complete = excluded.complete,
    created_at = excluded.created_at;

-- name: forget(topic, before)!
-- Deletes a topic's files of old days; returns how many there were.
delete from exports where topic = :topic and day < :before;

-- name: unfinished(days, topics, files)
-- Days of which some topic has fewer complete files than it should, newest first.
select asked.day
from unnest(:days::date[]) as asked (day)
where exists (
    select
    from unnest(:topics::text[], :files::int[]) as t (topic, files)
    where (select count(*) from exports e where e.topic = t.topic and e.day = asked.day and e.complete) < t.files
)
order by asked.day desc;

-- --- As the API shows them ----------------------------------------------------------------------------------------------------

-- name: days(topics, from_day, to_day, before_day, before_topic, limit)
-- Exported days of some topics, newest first: day, topic and record.
select day, topic, json_build_object(
    'topic', topic,
    'day', day,
    'rows', sum(rows) filter (where format = 'parquet'),
    'bytes', sum(bytes),
    'files', count(*),
    'complete', bool_and(complete),
    'created_at', as_unix(max(created_at)),
    'manifest', format('/v1/exports/%%s/%%s', topic, day)
)::text
from exports
where topic = any(:topics::text[])
    and (:from_day::date is null or day >= :from_day::date) and (:to_day::date is null or day <= :to_day::date)
    and (:before_day::date is null or (day, topic) < (:before_day::date, :before_topic::text))
group by day, topic
order by day desc, topic desc
limit :limit;

-- name: manifest(topic, day)$
-- The manifest of a day's files.
select json_build_object(
    'topic', topic,
    'day', day,
    'rows', sum(rows) filter (where format = 'parquet'),
    'complete', bool_and(complete),
    'created_at', as_unix(max(created_at)),
    'files', json_agg(json_build_object(
        'name', split_part(file, '/', 3),
        'format', format,
        'part', part,
        'rows', rows,
        'bytes', bytes,
        'sha256', encode(sha256, 'hex'),
        'complete', complete,
        'url', '/v1/exports/' || file
    ) order by part, format)
)::text
from exports
where topic = :topic and day = :day
group by topic, day;

-- name: file(topic, day, name)^
-- A file, by its name or by the same without the digest's digits, which selects whichever version exists: path, bytes, digest,
-- when written.
select file, bytes, encode(sha256, 'hex'), created_at
from exports
where topic = :topic and day = :day
    and :name in (split_part(file, '/', 3), regexp_replace(split_part(file, '/', 3), '\.[0-9a-f]{16}\.', '.'));
