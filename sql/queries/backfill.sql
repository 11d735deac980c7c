-- The days before an installation's first, filled in: what is remembered of it, and what has to be computed anew for it.

-- name: state()$
-- What is remembered; null before the first time.
select value from settings where name = 'backfill';

-- name: remember(value)!
-- Keeps it.
insert into settings (name, value) values ('backfill', :value::jsonb)
on conflict (name) do update set value = excluded.value, updated_at = now();

-- name: beat_at()$
-- When a run last gave a sign of life.
select updated_at from settings where name = 'backfill';

-- name: try_alone()$
-- Whether nobody else fills in; for as long as this session lives, nobody else does.
select pg_try_advisory_lock(hashtextextended('presage.backfill', 0));

-- name: ask(job)!
-- Asks a job for its next pass at once, since what it computes from has changed far back.
insert into settings (name, value) values ('asked.' || :job::text, to_jsonb(now()))
on conflict (name) do update set value = excluded.value, updated_at = now();

-- name: asked(job)$
-- When a job was last asked for a pass.
select (value #>> '{}')::timestamptz from settings where name = 'asked.' || :job::text;

-- name: forget_weeks()!
-- The week's volumes are added up anew by the next pass, and not some minutes later.
delete from market_weeks;

-- name: behind_s()$
-- How many seconds the newest that the feed has brought lies back; null before there is anything.
select extract(epoch from now() - last_data_at)::float8 from stage_clocks where stage = 'ingestion';
