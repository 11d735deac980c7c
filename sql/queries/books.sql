-- Current and past order books.

-- name: of_outcome(market_key, outcome)$
-- The live order book of one outcome.
select record::text from book_records where market_key = :market_key and outcome = :outcome;

-- name: withheld(market_key, outcome)$
-- Why no live book of an outcome is shown: the market has ended, its book disagrees with the exchange's best prices, or the
-- feed is late; else null.
select case when m.status <> 'ACTIVE' then 'ended' when not b.verified then 'doubted' when b.verified and not feed.alive then 'late' end
from markets m
cross join lateral (select m.exchange = any ((select live_exchanges())::text[]) as alive) as feed
left join live_books b on b.market_key = m.market_key and b.outcome = :outcome
where m.market_key = :market_key;

-- name: anchor(market_key, outcome, at)
-- The last full book at or before an instant: the exchange's own snapshot, or one that we stored. Beside it, the instant and event after
-- which changes are to be applied: all that follow a snapshot; all around one of ours, since a change that comes late may be older than
-- it.
with kept as (
    select ts, seq, bid_prices, bid_sizes, ask_prices, ask_sizes
    from book_anchors
    where market_key = :market_key and outcome = :outcome and ts <= :at::timestamptz
    order by ts desc, seq desc
    limit 1
),
sent as (
    select ts, seq, bid_prices, bid_sizes, ask_prices, ask_sizes, hash
    from book_events
    where market_key = :market_key and outcome = :outcome and side is null and ts <= :at::timestamptz
    order by ts desc, seq desc
    limit 1
)
select ts, seq, bid_prices, bid_sizes, ask_prices, ask_sizes, hash, ts as since, seq as after_seq
from sent
where ts >= coalesce((select ts - interval '5 seconds' from kept), '-infinity')
union all
select ts, seq, bid_prices, bid_sizes, ask_prices, ask_sizes, null, ts - interval '5 seconds', -1
from kept
where not exists (select from sent where sent.ts >= kept.ts - interval '5 seconds');

-- name: changes(market_key, outcome, since, after_seq, until)
-- The latest change of each level since an anchor.
select distinct on (side, price) side, price, size, ts, seq, hash
from book_events
where market_key = :market_key and outcome = :outcome and side is not null
    and ts >= :since::timestamptz and ts <= :until::timestamptz and seq > :after_seq
order by side, price, ts desc, seq desc;

-- name: packed(market_key, outcome, at, since)
-- The last pack that begins at or before an instant, unless it ends before `since`; then, in order, the events stored as rows from its
-- beginning on. One statement, so that what is packed meanwhile is seen exactly once.
with pack as materialized (
    select ts, data
    from (
        select ts, until_ts, data
        from book_packs
        where market_key = :market_key and outcome = :outcome and ts <= :at::timestamptz
        order by ts desc
        limit 1
    ) as newest
    where until_ts >= coalesce(:since::timestamptz, '-infinity')
)
select data, null::bigint as us, null::bigint as seq, null::smallint, null::int, null::bigint,
    null::int[], null::bigint[], null::int[], null::bigint[], null::bytea
from pack
union all
select null, as_us(e.ts), e.seq, e.side, e.price, e.size, e.bid_prices, e.bid_sizes, e.ask_prices, e.ask_sizes, e.hash
from pack
cross join lateral (
    select *
    from book_events
    where market_key = :market_key and outcome = :outcome and ts >= pack.ts and ts <= :at::timestamptz
) as e
order by us nulls first, seq;

-- name: packs(market_keys, outcomes, since, until, most)
-- Packs with events in (since, until], by the position of their outcome among those requested, from 1; at most this many.
select p.n::int, b.ts, b.data
from unnest(:market_keys::int[], :outcomes::smallint[]) with ordinality as p (market_key, outcome, n)
cross join lateral (
    select ts, data
    from book_packs
    where market_key = p.market_key and outcome = p.outcome and ts <= :until::timestamptz and until_ts > :since::timestamptz
        and ts > :since::timestamptz - interval '1 day' -- none is longer
) as b
order by p.n, b.ts
limit :most;

-- name: steps(market_key, outcome, since, until, step_ms)
-- The latest change of each level in each step of a time range, (since, until], by step, counted from 1.
select distinct on (step, side, price) step, side, price, size, ts, seq
from book_events
cross join lateral (select ceil((as_ms(ts) - as_ms(:since::timestamptz))::numeric / :step_ms)::int as step) as s
where market_key = :market_key and outcome = :outcome and side is not null
    and ts > :since::timestamptz and ts <= :until::timestamptz
order by step, side, price, ts desc, seq desc;

-- name: snapshots(market_key, outcome, since, until, step_ms)
-- The last full book that the exchange sent in each step.
select distinct on (step) step, ts, seq, bid_prices, bid_sizes, ask_prices, ask_sizes
from book_events
cross join lateral (select ceil((as_ms(ts) - as_ms(:since::timestamptz))::numeric / :step_ms)::int as step) as s
where market_key = :market_key and outcome = :outcome and side is null
    and ts > :since::timestamptz and ts <= :until::timestamptz
order by step, ts desc, seq desc;

-- name: best_at(market_key, outcome, instants)
-- The best prices in force at some instants, as stored beside the exchange's own.
select i.ordinality::int, q.bid, q.ask
from unnest(:instants::timestamptz[]) with ordinality as i (ts, ordinality)
cross join lateral (
    select bid, ask
    from quotes
    where market_key = :market_key and outcome = :outcome and ts <= i.ts
    order by ts desc
    limit 1
) as q
order by i.ordinality;

-- name: gaps(market_key, since, until)
-- Time ranges in which book events may have been missed, and were not received elsewhere.
select as_ms(from_ts), as_ms(to_ts), cause
from coverage_gaps
where kind = 'books' and filled_at is null
    and (
        market_key = :market_key
        or market_key is null and exists (
            select from markets m
            where m.market_key = :market_key and m.exchange = coverage_gaps.exchange and in_shard(m.market_id, shard, shards)
        )
    )
    and from_ts <= :until::timestamptz and coalesce(to_ts, 'infinity') > :since::timestamptz
order by from_ts;

-- name: first_event(market_key, outcome)$
-- The instant from which on books of an outcome are available; null if none is.
select least(
    (
        select ts from book_events where market_key = :market_key and outcome = :outcome and side is null order by ts limit 1
    ),
    (select ts from book_anchors where market_key = :market_key and outcome = :outcome order by ts limit 1),
    (
        select whole_from from book_packs
        where market_key = :market_key and outcome = :outcome and whole_from is not null
        order by ts limit 1
    )
);

-- name: keep_anchors(apart)!
-- Stores the verified live books that have changed since the last full one, stored or sent, if that is long enough ago.
insert into book_anchors (ts, market_key, outcome, seq, bid_prices, bid_sizes, ask_prices, ask_sizes)
select b.ts, b.market_key, b.outcome, b.seq, b.bid_prices, b.bid_sizes, b.ask_prices, b.ask_sizes
from live_books b
left join lateral (
    select a.ts
    from book_anchors a
    where a.market_key = b.market_key and a.outcome = b.outcome and a.ts >= b.ts - :apart::interval
    order by a.ts desc
    limit 1
) as last on true
where b.verified and last.ts is null
    and b.updated_at >= coalesce((select max(ts) from book_anchors), '-infinity') - interval '1 hour'
    and not exists (
        select from book_events e
        where e.market_key = b.market_key and e.outcome = b.outcome and e.side is null
            and e.ts >= b.ts - :apart::interval and e.ts <= b.ts
    )
on conflict do nothing;
