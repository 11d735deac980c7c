-- Backfill of the days before the installation: its stored state, and what has to be recomputed because of it.

-- name: state()$
-- The stored state; null before the first time.
select value from settings where name = 'backfill';

-- name: remember(value)!
-- Stores the state.
insert into settings (name, value) values ('backfill', :value::jsonb)
on conflict (name) do update set value = excluded.value, updated_at = now();

-- name: beat_at()$
-- When a run last sent a heartbeat.
select updated_at from settings where name = 'backfill';

-- name: try_alone()$
-- Takes the backfill's lock for as long as this session lives; false if another holds it.
select pg_try_advisory_lock(hashtextextended('presage.backfill', 0));

-- name: ask(job)!
-- Requests a job's next pass at once, as old data that it computes from has changed.
insert into settings (name, value) values ('asked.' || :job::text, to_jsonb(now()))
on conflict (name) do update set value = excluded.value, updated_at = now();

-- name: asked(job)$
-- When a pass of a job was last requested.
select (value #>> '{}')::timestamptz from settings where name = 'asked.' || :job::text;

-- name: forget_weeks()!
-- The week's volumes are recomputed by the next pass, and not some minutes later.
delete from market_weeks;

-- name: behind_s()$
-- How many seconds ago the feed's newest data is; null before there is any.
select extract(epoch from now() - last_data_at)::float8 from stage_clocks where stage = 'ingestion';
