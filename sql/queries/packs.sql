-- Book events of past days, packed; see sql/packs.py.

-- name: alone()!
-- One packer at a time.
select pg_advisory_xact_lock(hashtextextended('presage.packs', 0));

-- name: due(before)$
-- Whether older changes of levels are stored as rows, other than those that stay beside a snapshot.
select exists (
    select from book_events e
    where e.side is not null and e.ts < :before::timestamptz
        and not exists (
            select from book_events s
            where s.market_key = e.market_key and s.outcome = e.outcome and s.ts = e.ts and s.side is null
                and s.ts < :before::timestamptz
        )
);

-- name: outcomes(before)
-- Outcomes with rows older than that, and how many.
select market_key, outcome, count(*)::int from book_events where ts < :before::timestamptz group by 1, 2 order by 1, 2;

-- name: instant_after(market_key, outcome, rows, before)$
-- The instant of the row that is so many rows after an outcome's oldest; null if it has no more rows that are older than `before`.
select ts from book_events
where market_key = :market_key and outcome = :outcome and ts < :before::timestamptz
order by ts
offset :rows
limit 1;

-- name: move_out(market_keys, outcomes, before)
-- Deletes older rows and returns them, each with the chunk that it was in. Of each outcome the newest snapshot stays: a new connection
-- receives it first, and finds that it is stored already. So does all of its instant, since a pack cannot be split there.
delete from book_events e
using (
    select p.market_key, p.outcome, newest.ts
    from unnest(:market_keys::int[], :outcomes::smallint[]) as p (market_key, outcome)
    left join lateral (
        select n.ts from book_events n
        where n.market_key = p.market_key and n.outcome = p.outcome and n.side is null
        order by n.ts desc
        limit 1
    ) as newest on true
) as held
where e.market_key = held.market_key and e.outcome = held.outcome and e.ts < :before::timestamptz
    and e.ts is distinct from held.ts
returning e.market_key, e.outcome, as_us(e.ts), e.seq, e.side, e.price, e.size,
    e.bid_prices, e.bid_sizes, e.ask_prices, e.ask_sizes, e.hash, e.tableoid::bigint;

-- name: left_behind(market_keys, outcomes, before)
-- The rows that stay: part of what later packs begin with.
select e.market_key, e.outcome, as_us(e.ts), e.seq, e.side, e.price, e.size,
    e.bid_prices, e.bid_sizes, e.ask_prices, e.ask_sizes, e.hash
from unnest(:market_keys::int[], :outcomes::smallint[]) as p (market_key, outcome)
join book_events e on e.market_key = p.market_key and e.outcome = p.outcome
where e.ts < :before::timestamptz;

-- name: names(market_keys, outcomes)
-- The exchange's ids of outcomes' markets and tokens.
select p.market_key, p.outcome, m.market_id, t.token_id
from unnest(:market_keys::int[], :outcomes::smallint[]) as p (market_key, outcome)
join markets m using (market_key)
join tokens t using (market_key, outcome);

-- name: take_back(market_keys, outcomes, since_us)
-- Deletes the packs that hold events from an instant on, a different one for each outcome, and returns them.
delete from book_packs b
using unnest(:market_keys::int[], :outcomes::smallint[], :since_us::bigint[]) as p (market_key, outcome, us)
where b.market_key = p.market_key and b.outcome = p.outcome and b.until_ts >= from_us(p.us)
returning b.market_key, b.outcome, b.ts, b.data;

-- name: last_before(market_keys, outcomes, since_us)
-- The last pack of each outcome before an instant.
select p.market_key, p.outcome, b.data
from unnest(:market_keys::int[], :outcomes::smallint[], :since_us::bigint[]) as p (market_key, outcome, us)
cross join lateral (
    select data from book_packs
    where market_key = p.market_key and outcome = p.outcome and ts < from_us(p.us)
    order by ts desc
    limit 1
) as b;

-- name: first_after(market_keys, outcomes, since_us)
-- The first pack of each outcome after an instant.
select p.market_key, p.outcome, b.data
from unnest(:market_keys::int[], :outcomes::smallint[], :since_us::bigint[]) as p (market_key, outcome, us)
cross join lateral (
    select data from book_packs
    where market_key = p.market_key and outcome = p.outcome and ts > from_us(p.us)
    order by ts
    limit 1
) as b;

-- name: add(market_key, outcome, ts_us, until_us, whole_us, events, data)*!
-- Stores packs.
insert into book_packs (market_key, outcome, ts, until_ts, whole_from, events, data)
values (:market_key, :outcome, from_us(:ts_us), from_us(:until_us), from_us(:whole_us), :events, :data);

-- name: take_out(since, until)
-- Deletes the packs with events in a time range, and returns them with the token that each is about.
delete from book_packs b
using tokens t
where t.market_key = b.market_key and t.outcome = b.outcome
    and b.ts < :until::timestamptz and b.until_ts >= :since::timestamptz and b.ts >= :since::timestamptz - interval '1 day'
returning t.token_id, b.market_key, b.outcome, b.data;

-- name: make_room#
-- The temporary table of events to be restored as rows.
create temp table if not exists unpacked (like book_events) on commit delete rows;

-- name: restore()!
-- Stores unpacked events as rows again.
insert into book_events select * from unpacked on conflict do nothing;

-- name: hold()$
-- Prevents rows from being packed for as long as this session lasts, or until it releases them.
select pg_advisory_lock_shared(hashtextextended('presage.packs.rows', 0))::text;

-- name: let_go()$
-- Allows packing again.
select pg_advisory_unlock_shared(hashtextextended('presage.packs.rows', 0));

-- name: try_pack()$
-- Whether nobody needs the rows; if so, takes the lock.
select pg_try_advisory_lock(hashtextextended('presage.packs.rows', 0));

-- name: done()$
-- The end of packing.
select pg_advisory_unlock(hashtextextended('presage.packs.rows', 0));

-- name: emptied(before, chunks)
-- Chunks of old book events that take up space: of those named, and of those never rewritten.
select c.oid::regclass::text
from timescaledb_information.chunks
join pg_class c on c.oid = format('%%I.%%I', chunk_schema, chunk_name)::regclass
where (c.oid = any(:chunks::bigint[]::oid[]) or c.relfilenode = c.oid)
    and hypertable_schema = 'public' and hypertable_name = 'book_events' and range_end <= :before::timestamptz
    and pg_total_relation_size(c.oid) > 1 << 20;
