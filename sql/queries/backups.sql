-- Base backups and the archived write-ahead log.

-- name: archive()^
-- Whether the server archives, the segments that wait and since when, and when it last archived and failed.
select current_setting('archive_mode') <> 'off', waiting.segments, waiting.since, a.last_archived_time, a.last_failed_time
from pg_stat_archiver a,
     (
         select count(*) as segments, min(modification) as since
         from pg_ls_archive_statusdir()
         where right(name, 6) = '.ready'
     ) as waiting;

-- name: segment_bytes()$
-- Size of a segment of the write-ahead log.
select pg_size_bytes(current_setting('wal_segment_size'));

-- name: state()$
-- The stored state of base backups; null before the first.
select value from settings where name = 'base_backups';

-- name: save(state)!
-- Store the state of base backups.
insert into settings (name, value) values ('base_backups', :state::jsonb)
on conflict (name) do update set value = excluded.value, updated_at = now();

-- name: forget()!
-- Delete the state, which belongs to another cluster's backups.
delete from settings where name = 'base_backups';

-- name: ages()^
-- For metrics: whether the server archives, and the seconds since it last did; then since the newest base backup and
-- since the last restore check, and whether that succeeded; null where there was none.
select current_setting('archive_mode') <> 'off',
       extract(epoch from now() - a.last_archived_time)::float8,
       extract(epoch from now() - (s.value -> 'newest' ->> 'ended')::timestamptz)::float8,
       extract(epoch from now() - (s.value -> 'checked' ->> 'at')::timestamptz)::float8,
       (s.value -> 'checked' ->> 'ok')::boolean
from pg_stat_archiver a
left join settings s on s.name = 'base_backups';
