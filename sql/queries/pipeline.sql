-- The pipeline's state.

-- name: lags()
-- Every stage's state, `off` where it is not configured, and lateness in seconds.
select stage, case when off then 'off' else status end, lag_s::double precision from pipeline_status order by stage;

-- name: clocks()
-- By how many seconds the clock of each feed's host is ahead of the database's; of several live runs the largest.
select distinct on (feed) feed, (detail ->> 'clock_ahead_ms')::float8 / 1000
from feed_leases
where role <> 'gone' and beat_at > now() - interval '1 minute' and detail ? 'clock_ahead_ms'
order by feed, abs((detail ->> 'clock_ahead_ms')::float8) desc;

-- name: status(redis_up)$
-- Every stage, in the order of the data flow, and the worst of them.
select json_build_object(
    'status', coalesce(
        (array['missing', 'stale', 'late', 'fresh'])[
            min(array_position(array['missing', 'stale', 'late', 'fresh'], status)) filter (where not off)
        ], 'missing'),
    'redis_up', :redis_up::boolean,
    'stages', coalesce(json_agg(json_build_object(
        'stage', stage,
        'status', status,
        'last_data_at', as_unix(last_data_at),
        'lag_s', round(lag_s::numeric, 3)::double precision,
        'warn_after_s', warn_after_s,
        'fail_after_s', fail_after_s,
        'detail', detail
    ) order by array_position(
        array['discovery', 'ingestion', 'settlement', 'analysis', 'aggregates', 'delivery'], stage), stage), '[]'),
    'checked_at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
)::text
from pipeline_status;
