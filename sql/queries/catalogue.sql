-- name: lock()!
-- One writer of the catalogue at a time: pages, socket messages and backfills then need no thought about each other's order.
select pg_advisory_xact_lock(hashtextextended('presage.catalogue', 0));

-- name: upsert_events(rows)!
-- Upserts the events that markets belong to, from a JSON array of rows; unchanged ones are not touched.
insert into events (event_id, slug, title, category, series, tags, start_time, end_time, closed, neg_risk, image)
select event_id, slug, title, category, series, coalesce(tags, '{}'), start_time, end_time,
       coalesce(closed, false), coalesce(neg_risk, false), image
from jsonb_to_recordset(:rows::jsonb) as e (
    event_id text, slug text, title text, category text, series text, tags text[], start_time timestamptz, end_time timestamptz,
    closed boolean, neg_risk boolean, image text
)
on conflict (event_id) do update set
    slug = coalesce(excluded.slug, events.slug),
    title = coalesce(excluded.title, events.title),
    category = coalesce(excluded.category, events.category),
    series = coalesce(excluded.series, events.series),
    tags = coalesce(nullif(excluded.tags, '{}'), events.tags),
    start_time = coalesce(excluded.start_time, events.start_time),
    end_time = coalesce(excluded.end_time, events.end_time),
    closed = excluded.closed,
    neg_risk = excluded.neg_risk,
    image = coalesce(excluded.image, events.image),
    updated_at = now()
where (events.slug, events.title, events.category, events.series, events.tags, events.start_time, events.end_time, events.closed,
       events.neg_risk, events.image)
    is distinct from
      (coalesce(excluded.slug, events.slug), coalesce(excluded.title, events.title), coalesce(excluded.category, events.category),
       coalesce(excluded.series, events.series), coalesce(nullif(excluded.tags, '{}'), events.tags),
       coalesce(excluded.start_time, events.start_time), coalesce(excluded.end_time, events.end_time), excluded.closed,
       excluded.neg_risk, coalesce(excluded.image, events.image));

-- name: upsert_tokens(market_keys)!
-- The market and outcome of each token of these markets. A token that a market no longer lists keeps its row: its history is
-- the market's.
insert into tokens (token_id, market_key, outcome)
select distinct on (t.token_id) t.token_id, m.market_key, t.place - 1
from markets m, unnest(m.token_ids) with ordinality as t (token_id, place)
where m.market_key = any(:market_keys::int[]) and t.token_id <> ''
order by t.token_id, m.market_key desc
on conflict (token_id) do update set market_key = excluded.market_key, outcome = excluded.outcome
where (tokens.market_key, tokens.outcome) is distinct from (excluded.market_key, excluded.outcome);

-- name: record_status_changes(market_keys, from_statuses, cause)
-- One row for each change, returned with its market's exchange and the record that the stream publishes of it.
with changed as (
    insert into market_status_changes (market_key, from_status, to_status, cause)
    select c.market_key, c.from_status, m.status, :cause
    from unnest(:market_keys::int[], :from_statuses::text[]) as c (market_key, from_status)
    join markets m using (market_key)
    order by c.market_key
    returning change_id, market_key, from_status, to_status, cause, ts
)
select c.ts, m.market_id, m.exchange, json_build_object(
    'market_id', m.market_id, 'slug', m.slug, 'question', m.question, 'status', c.to_status,
    'from_status', c.from_status, 'to_status', c.to_status, 'cause', c.cause,
    'event_id', m.event_id, 'category', m.category, 'outcomes', m.outcomes, 'token_ids', m.token_ids,
    'outcome_prices', coalesce(
        (select json_agg(as_number(p.price) order by p.place) from unnest(m.outcome_prices) with ordinality as p (price, place)), '[]'
    ),
    'winning_outcome', m.winning_outcome, 'end_time', as_unix(m.end_time), 'closed_at', as_unix(m.closed_at),
    'resolved_at', as_unix(m.resolved_at), 'source', m.source
)::text as data
from changed c join markets m using (market_key)
order by c.change_id;

-- name: refuse(source, reason, payload)!
-- Stores a payload that could not be used, and why.
insert into quarantine (source, reason, payload) values (:source, :reason, left(:payload, 65536));

-- name: begin_walk(name)!
-- Marks an exchange's catalogue as being scanned for as long as this session lives; waits for another scan of it to end.
select pg_advisory_lock(hashtextextended('presage.' || :name, 0));

-- name: walking(name)$
-- Whether a session that scans an exchange's catalogue is alive.
select exists (
    select from pg_locks, hashtextextended('presage.' || :name::text, 0) as key
    where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())
      and ((classid::bigint << 32) | objid::bigint) = key
);

-- name: state(name)$
-- The stored state of a discovery.
select value from settings where name = :name;

-- name: remember(name, value)!
-- Updates the stored state of a discovery.
insert into settings (name, value) values (:name, :value::jsonb)
on conflict (name) do update set value = settings.value || excluded.value, updated_at = now();

-- name: unseen(since, source, exchange)
-- Markets stored as open since before a scan began; those of them that it did not meet are no longer listed.
select market_id from markets
where status = 'ACTIVE' and exchange = :exchange and first_seen_at < :since and source = :source
order by market_key desc;

-- name: ended(since, most, exchange)
-- Markets about to change their state: open ones whose planned end has recently passed, and recently closed ones without a
-- payout.
select market_id from markets
where exchange = :exchange and (
    (status = 'ACTIVE' and end_time between :since and now())
    or (status = 'CLOSED' and coalesce(closed_at, end_time) > :since)
)
order by end_time desc nulls last
limit :most;

-- name: unpaid(since, exchange)
-- Closed markets that still wait for their payout.
select market_id from markets
where status = 'CLOSED' and exchange = :exchange and coalesce(closed_at, end_time, first_seen_at) > :since
order by market_key desc
limit 2000;

-- name: counts(exchange)^
-- An exchange's markets by state.
select count(*) filter (where status = 'ACTIVE'), count(*) filter (where status = 'CLOSED'),
       count(*) filter (where status = 'RESOLVED')
from markets
where exchange = :exchange;
