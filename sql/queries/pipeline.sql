-- The pipeline's state.

-- name: lags()
-- Every stage's state, `off` where it is not configured, and lateness in seconds.
select stage, case when off then 'off' else status end, lag_s::double precision from pipeline_status order by stage;

-- name: server()^
-- The database server: its connections, how many it allows, and the age of its oldest unfrozen transaction. Any role may ask.
select
    (select sum(numbackends) from pg_stat_database)::int,
    current_setting('max_connections')::int,
    (select max(age(datfrozenxid)) from pg_database)::bigint;

-- name: replica_lag()$
-- Seconds since the newest transaction that a replica has replayed was committed; null on a server that is no replica, and before
-- the first.
select greatest(0, date_part('epoch', clock_timestamp() - replayed_at))
from (select pg_last_xact_replay_timestamp() as replayed_at) as newest
where pg_is_in_recovery() and replayed_at is not null;

-- name: lag_of_reads()$
-- How many seconds what is read here is behind: 0 on a primary; null on a replica that has replayed nothing yet.
select case
    when not pg_is_in_recovery() then 0
    when pg_last_xact_replay_timestamp() is not null then greatest(0, date_part('epoch', clock_timestamp() - pg_last_xact_replay_timestamp()))
end;

-- name: clocks()
-- By how many seconds the clock of each feed's host is ahead of the database's; of several live runs the largest.
select distinct on (feed) feed, (detail ->> 'clock_ahead_ms')::float8 / 1000
from feed_leases
where role <> 'gone' and beat_at > now() - interval '1 minute' and detail ? 'clock_ahead_ms'
order by feed, abs((detail ->> 'clock_ahead_ms')::float8) desc;

-- name: shards()
-- Each shard of the live feeds: its exchange, its name, whether a run leads it, whether another could, and of the leader: messages a second, events that
-- wait to be written, and the 99th percentile of the lag in seconds.
select
    exchange, n || ' of ' || shards, coalesce(bool_or(role = 'leader'), false), coalesce(bool_or(role = 'standby' and ready), false),
    max((detail ->> 'rate')::float8) filter (where role = 'leader'), max((detail ->> 'backlog_events')::float8) filter (where role = 'leader'),
    max((detail ->> 'lag_p99_ms')::float8) filter (where role = 'leader') / 1000
from (select coalesce((select (value #>> '{}')::int from settings where name = 'live_shards'), 1) as shards) as wanted
cross join (select f.exchange from exchange_feeds() f join pipeline_status p using (stage) where not p.off) as exchanges
cross join lateral generate_series(1, shards) as n
left join feed_leases on feed = feed_of(exchange, n, shards) and role <> 'gone' and beat_at > now() - interval '10 seconds'
group by exchange, n, shards
order by exchange desc, n;

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
        array['discovery', 'discovery_kalshi', 'ingestion', 'ingestion_kalshi', 'settlement', 'analysis', 'aggregates', 'delivery'], stage), stage), '[]'),
    'checked_at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
)::text
from pipeline_status;
