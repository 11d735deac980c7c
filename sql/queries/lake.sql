-- Rows of the lake's tables, and which days it has. Data is copied as CSV: a query's columns are the table's, in their order; amounts are
-- micro-units. Sorted by market, so that one market's rows lie together, and so that the same data gives the same file.

-- name: markets(to_ts)
-- Every market listed by then.
select
    market_id, exchange, slug, question, status, category, event_id, event_title, series, to_json(tags)::text as tags,
    to_json(outcomes)::text as outcomes, to_json(token_ids)::text as token_ids, start_time, end_time, created_at, closed_at, resolved_at,
    winning_outcome, neg_risk, source
from markets
where coalesce(created_at, first_seen_at) < :to_ts
order by market_id;

-- name: markets_fingerprint(to_ts)$
-- What changes when a row of these does.
select concat_ws(' ', count(*), as_us(max(updated_at))) from markets where coalesce(created_at, first_seen_at) < :to_ts;

-- name: trades(from_ts, to_ts)
-- The exchange's tape.
select
    t.ts, m.market_id, t.outcome, t.trade_id, t.seq, case when t.side > 0 then 'BUY' else 'SELL' end as side, t.price, t.size, t.value_usd,
    '0x' || encode(t.tx_hash, 'hex') as tx_hash
from trades t
join markets m using (market_key)
where t.ts >= :from_ts and t.ts < :to_ts
order by m.market_id, t.outcome, t.ts, t.seq, t.trade_id;

-- name: trades_fingerprint(from_ts, to_ts)$
-- What changes when a row of these does.
select concat_ws(' ', count(*), sum(trade_id::numeric)) from trades where ts >= :from_ts and ts < :to_ts;

-- name: candles(from_ts, to_ts)
-- Candles of a minute, those with trades.
select c.bucket as ts, m.market_id, c.outcome, c.open, c.high, c.low, c.close, c.volume, c.value_usd, c.trades
from candles_1m c
join markets m using (market_key)
where c.bucket >= :from_ts and c.bucket < :to_ts
order by m.market_id, c.outcome, c.bucket;

-- name: candles_fingerprint(from_ts, to_ts)$
-- What changes when a row of these does.
select concat_ws(' ', count(*), sum(trades), sum(value_usd), sum(open::numeric + high + low + close))
from candles_1m where bucket >= :from_ts and bucket < :to_ts;

-- name: settlements(from_ts, to_ts)
-- Fills as the chain settled them.
select
    s.ts, s.block_number, s.log_index, '0x' || encode(s.tx_hash, 'hex') as tx_hash, c.token_id, m.market_id, t.outcome,
    '0x' || encode(s.maker, 'hex') as maker, '0x' || encode(s.taker, 'hex') as taker,
    case when s.side > 0 then 'BUY' else 'SELL' end as side, s.price, s.size, s.value_usd, s.fee_usd, s.is_taker_order, s.counted
from settlements s
join chain_tokens c using (token_key)
left join tokens t using (token_id)
left join markets m using (market_key)
where s.ts >= :from_ts and s.ts < :to_ts
order by m.market_id, t.outcome, s.ts, s.block_number, s.log_index;

-- name: settlements_fingerprint(from_ts, to_ts)$
-- What changes when a row of these does. A market may become known later than the fills of its tokens.
select concat_ws(' ', count(*), sum(s.block_number::numeric * 10000 + s.log_index), count(t.token_id))
from settlements s
join chain_tokens c using (token_key)
left join tokens t using (token_id)
where s.ts >= :from_ts and s.ts < :to_ts;

-- name: book_events(from_ts, to_ts)
-- Whole books (snapshot) and changed levels (delta), packed ones included.
select
    e.ts, m.market_id, e.outcome, e.seq, case when e.side is null then 'snapshot' else 'delta' end as kind,
    case when e.side > 0 then 'bid' when e.side < 0 then 'ask' end as side, e.price, e.size,
    case when e.side is null then to_json(array(select array[as_number(l.price), as_number(l.size)] from unnest(e.bid_prices, e.bid_sizes) with ordinality as l (price, size, nth) order by l.nth))::text end as bids,
    case when e.side is null then to_json(array(select array[as_number(l.price), as_number(l.size)] from unnest(e.ask_prices, e.ask_sizes) with ordinality as l (price, size, nth) order by l.nth))::text end as asks,
    encode(e.hash, 'hex') as hash
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
order by m.market_id, e.outcome, e.ts, e.seq, e.side nulls first, e.price;

-- name: book_events_fingerprint(from_ts, to_ts)$
-- How many of these there are, but for those in `packs_across`.
select (
    (select count(*) from book_events where ts >= :from_ts and ts < :to_ts)
    + (select coalesce(sum(events), 0) from book_packs where ts >= :from_ts and until_ts < :to_ts)
)::bigint;

-- name: packs_across(from_ts, to_ts)
-- Packs that are partly within a range, a day or less: none is longer than a day.
select data from book_packs
where until_ts >= :from_ts and ts < :to_ts and ts >= :from_ts::timestamptz - interval '1 day' and (ts < :from_ts or until_ts >= :to_ts);

-- name: quotes(from_ts, to_ts)
-- Best prices, whenever they or their sizes changed.
select q.ts, m.market_id, q.outcome, q.bid, q.ask, q.mid, q.bid_size, q.ask_size
from quotes q
join markets m using (market_key)
where q.ts >= :from_ts and q.ts < :to_ts
order by m.market_id, q.outcome, q.ts;

-- name: quotes_fingerprint(from_ts, to_ts)$
-- What changes when a row of these does.
select concat_ws(' ', count(*), sum(bid), sum(ask)) from quotes where ts >= :from_ts and ts < :to_ts;

-- name: book_anchors(from_ts, to_ts)
-- Whole books that were stored so that those of later moments can be rebuilt.
select
    a.ts, m.market_id, a.outcome, a.seq,
    to_json(array(select array[as_number(l.price), as_number(l.size)] from unnest(a.bid_prices, a.bid_sizes) with ordinality as l (price, size, nth) order by l.nth))::text as bids,
    to_json(array(select array[as_number(l.price), as_number(l.size)] from unnest(a.ask_prices, a.ask_sizes) with ordinality as l (price, size, nth) order by l.nth))::text as asks
from book_anchors a
join markets m using (market_key)
where a.ts >= :from_ts and a.ts < :to_ts
order by m.market_id, a.outcome, a.ts, a.seq;

-- name: book_anchors_fingerprint(from_ts, to_ts)$
-- What changes when a row of these does.
select concat_ws(' ', count(*), sum(seq::numeric)) from book_anchors where ts >= :from_ts and ts < :to_ts;

-- name: book_packs(from_ts, to_ts)
-- Packs of book events, as the API unpacks them.
select
    p.ts, m.market_id, p.outcome, p.until_ts, p.whole_from, p.events, translate(encode(p.data, 'base64'), E'\n', '') as data
from book_packs p
join markets m using (market_key)
where p.ts >= :from_ts and p.ts < :to_ts
order by m.market_id, p.outcome, p.ts;

-- name: book_packs_fingerprint(from_ts, to_ts)$
-- What changes when a row of these does.
select concat_ws(' ', count(*), sum(events), sum(hashtextextended(encode(data, 'hex'), 0)::numeric))
from book_packs where ts >= :from_ts and ts < :to_ts;

-- name: book_rows(from_ts, to_ts)
-- Book events that stay rows beside packs (the Apache licence): the last book of each outcome, and what came late.
select
    e.ts, m.market_id, e.outcome, e.seq, case when e.side is null then 'snapshot' else 'delta' end as kind,
    case when e.side > 0 then 'bid' when e.side < 0 then 'ask' end as side, e.price, e.size,
    case when e.side is null then to_json(array(select array[as_number(l.price), as_number(l.size)] from unnest(e.bid_prices, e.bid_sizes) with ordinality as l (price, size, nth) order by l.nth))::text end as bids,
    case when e.side is null then to_json(array(select array[as_number(l.price), as_number(l.size)] from unnest(e.ask_prices, e.ask_sizes) with ordinality as l (price, size, nth) order by l.nth))::text end as asks,
    encode(e.hash, 'hex') as hash
from book_events e
join markets m using (market_key)
where e.ts >= :from_ts and e.ts < :to_ts and current_setting('timescaledb.license') = 'apache'
order by m.market_id, e.outcome, e.ts, e.seq, e.side nulls first, e.price;

-- name: book_rows_fingerprint(from_ts, to_ts)$
-- What changes when a row of these does.
select concat_ws(' ', count(*), sum(seq::numeric)) from book_events
where ts >= :from_ts and ts < :to_ts and current_setting('timescaledb.license') = 'apache';

-- name: hold(name)!
-- Waits until no other session writes a table, and keeps others from it until it is released.
select pg_advisory_lock(hashtextextended('presage.lake.' || :name, 0));

-- name: release(name)!
-- Lets other sessions write a table.
select pg_advisory_unlock(hashtextextended('presage.lake.' || :name, 0));

-- name: first_day(hypertable)$
-- The day of the oldest rows that are stored; null if there are none.
select (min(range_start) at time zone 'UTC')::date
from timescaledb_information.chunks
where hypertable_schema = 'public' and hypertable_name = :hypertable;

-- name: days(name)
-- The days of a table that the lake has: day, rows, files, bytes, fingerprint, when it was written.
select day, rows, files, bytes, fingerprint, written_at from lake_days where name = :name order by day;

-- name: rows_of(name, day)$
-- How many rows the lake has of a day; null if it does not have the day.
select rows from lake_days where name = :name and day = :day;

-- name: put(name, day, rows, paths, bytes, fingerprint)!
-- Records that the lake has a day.
insert into lake_days (name, day, rows, files, paths, bytes, fingerprint)
values (:name, :day, :rows, cardinality(:paths::text[]), :paths, :bytes, :fingerprint)
on conflict (name, day) do update set
    rows = excluded.rows, files = excluded.files, paths = excluded.paths, bytes = excluded.bytes, fingerprint = excluded.fingerprint,
    written_at = now();

-- name: pathless(name)
-- Days whose files are not recorded: an earlier release wrote them.
select day from lake_days where name = :name and paths is null order by day;

-- name: record_paths(name, day, paths)!
-- Records a day's files.
update lake_days set paths = :paths where name = :name and day = :day;

-- name: paths(names, since, until)
-- The files of tables, by name and day; not where they are not recorded, or where a day has none.
select name, day, paths from lake_days
where name = any(:names::text[]) and day >= :since::date and day <= :until::date and cardinality(paths) > 0;

-- name: hot_from(name)^
-- The instant before which rows of a table may be in the lake alone, and whether that has been said long enough ago for every process to
-- know.
select (value #>> '{}')::timestamptz, updated_at < now() - interval '10 minutes' from settings where name = 'lake_hot_from.' || :name;

-- name: say_hot_from(name, instant)!
-- Says from when on the database will have all rows of a table.
insert into settings (name, value) values ('lake_hot_from.' || :name, to_jsonb(:instant::timestamptz))
on conflict (name) do update set value = excluded.value, updated_at = now()
where settings.value <> excluded.value;

-- name: trade_days(market_key, outcome, since, until)
-- The days of a range on which a market, or one outcome of it, traded, newest first: by its candles, which are kept for ever.
select distinct (bucket at time zone 'UTC')::date as day
from candles_1h
where market_key = :market_key and (:outcome::integer is null or outcome = :outcome::integer)
    and bucket >= date_trunc('hour', :since::timestamptz) and bucket < :until
order by day desc;

-- name: forget_before(name, day)!
-- Forgets days of a table that is written whole.
delete from lake_days where name = :name and day < :day;

-- name: forget(name, day)!
-- Forgets a day, so that it is written again.
delete from lake_days where name = :name and day = :day;

-- name: first_missing(name, hypertable, before)$
-- The first stored day before an instant that the lake does not have; null if it has all of them.
select instant::date
from (
    select min(range_start) as oldest from timescaledb_information.chunks
    where hypertable_schema = 'public' and hypertable_name = :hypertable
) as stored,
generate_series(
    date_trunc('day', stored.oldest at time zone 'UTC'), (:before::timestamptz at time zone 'UTC') - interval '1 microsecond', interval '1 day'
) as instant
where not exists (select from lake_days l where l.name = :name and l.day = instant::date)
order by instant
limit 1;
