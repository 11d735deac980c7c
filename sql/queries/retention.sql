-- name: drop_before(hypertable, before)$
-- Drops the chunks whose every row is older.
select count(*) from drop_chunks(:hypertable::regclass, older_than => :before::timestamptz);

-- name: drop_stream_before(seq)$
-- Drops the chunks of the stream whose every event comes before this one.
select count(*) from drop_chunks('stream_events', older_than => :seq::bigint);

-- name: stream_ends()^
-- The oldest and the newest event kept.
select min(seq), max(seq) from stream_events;

-- name: stream_event_from(seq)^
-- The first event at or after this number, and when it happened.
select seq, ts from stream_events where seq >= :seq order by seq limit 1;

-- name: forget_leases(before)!
-- Leases of runs long gone.
delete from feed_leases where beat_at < :before;

-- name: forget_quarantine(before)!
-- Payloads refused long ago.
delete from quarantine where ts < :before;

-- name: sizes()
-- The largest tables and continuous aggregates, chunks and columns included.
select * from (
    select c.relname::text as name, pg_total_relation_size(c.oid) as bytes
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
      and not exists (select from timescaledb_information.hypertables h where h.hypertable_name = c.relname)
    union all
    select hypertable_name::text, hypertable_size(format('%%I.%%I', hypertable_schema, hypertable_name)::regclass)
    from timescaledb_information.hypertables
    where hypertable_schema = 'public'
    union all
    select view_name::text,
           hypertable_size(format('%%I.%%I', materialization_hypertable_schema, materialization_hypertable_name)::regclass)
    from timescaledb_information.continuous_aggregates
) as sizes
order by bytes desc
limit 20;
