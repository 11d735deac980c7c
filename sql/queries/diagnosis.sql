-- Queries of `presage doctor` on a database that has our schema.

-- name: stages()
-- Each stage: its state, how late it is, since when it has not checked, and why it is off, or what hinders it, and since when.
select
    stage, case when off then 'off' else status end, lag_s::float8, date_part('epoch', now() - beat_at)::float8, detail ->> 'off',
    detail ->> 'reason' || coalesce(to_char(to_timestamp((detail ->> 'since')::bigint) at time zone 'UTC', '", since" YYYY-MM-DD HH24:MI "UTC"'), '')
from pipeline_status
order by array_position(
    array['discovery', 'discovery_kalshi', 'ingestion', 'ingestion_kalshi', 'settlement', 'analysis', 'aggregates', 'delivery'], stage), stage;

-- name: feed_hosts()
-- Hosts with the role feed: name, seconds since the last sign of life, and how many runs are alive there.
select h.host, date_part('epoch', now() - h.beat_at)::float8, count(l.run_id)
from feed_hosts h
left join feed_leases l on l.host = h.host and l.role <> 'gone' and l.beat_at > now() - interval '10 seconds'
group by h.host, h.beat_at
order by h.host;

-- name: losses()^
-- Gaps open now (that of a market found a moment ago is not counted), gaps of a day not filled, payloads refused within an
-- hour, and open incidents.
select (
           select count(*) from coverage_gaps
           where to_ts is null and (cause <> 'listed before it was followed' or created_at < now() - interval '1 minute')
       ),
       (select count(*) from coverage_gaps where from_ts > now() - interval '1 day' and filled_at is null),
       (select count(*) from quarantine where ts > now() - interval '1 hour'),
       (select count(*) from data_incidents where mended_at is null);

-- name: clocks()
-- Hosts of live runs, and by how many seconds their clocks are ahead of the database's; of several runs the largest.
select distinct on (host) host, ahead_s
from (
    select coalesce(host, 'unknown'), (detail ->> 'clock_ahead_ms')::float8 / 1000
    from feed_leases
    where role <> 'gone' and beat_at > now() - interval '1 minute' and detail ? 'clock_ahead_ms'
) as l (host, ahead_s)
order by host, abs(ahead_s) desc;

-- name: chunks()
-- Each hypertable: its chunks, those that begin days ahead of now, the oldest's end, its bytes, and those of its largest chunk.
select h.hypertable_name::text, count(*), count(*) filter (where c.range_start > now() + interval '7 days'),
       min(c.range_end), sum(d.total_bytes)::bigint, max(d.total_bytes)::bigint
from timescaledb_information.hypertables h
join timescaledb_information.chunks c using (hypertable_schema, hypertable_name)
cross join lateral chunks_detailed_size(format('%%I.%%I', hypertable_schema, hypertable_name)::regclass) d
where h.hypertable_schema = 'public' and d.chunk_schema = c.chunk_schema and d.chunk_name = c.chunk_name
group by 1
order by 5 desc;

-- name: growth()$
-- Bytes a day, estimated for each hypertable from its newest finished chunk, by its width. Null while there is none.
select sum(bytes / nullif(date_part('epoch', width) / 86400, 0))::float8
from (
    select distinct on (c.hypertable_name) d.total_bytes as bytes, c.range_end - c.range_start as width
    from timescaledb_information.chunks c
    cross join lateral chunks_detailed_size(format('%%I.%%I', c.hypertable_schema, c.hypertable_name)::regclass) d
    where c.hypertable_schema = 'public' and d.chunk_schema = c.chunk_schema and d.chunk_name = c.chunk_name
      and c.range_end <= now()
    order by c.hypertable_name, c.range_end desc
) as newest;

-- name: size()$
-- Bytes of the database.
select pg_database_size(current_database());

-- name: data_directory()$
-- The server's folder; null where our role may not see it.
select setting from pg_settings where name = 'data_directory';

-- name: keys()
-- Keys of each tier: valid, revoked, and valid ones that have used nine tenths of their month.
select k.tier, count(*) filter (where k.revoked_at is null), count(*) filter (where k.revoked_at is not null),
       count(*) filter (where k.revoked_at is null and coalesce(u.used, 0) >= 0.9 * coalesce(k.credits_month, t.credits_month))
from api_keys k
join tiers t using (tier)
left join credit_usage u on u.key_id = k.key_id and u.month = date_trunc('month', now(), 'UTC')
group by 1
order by 1;

-- name: wraparound()$
-- Transactions since the oldest row that is not frozen; at two milliards the server stops writing.
select age(datfrozenxid) from pg_database where datname = current_database();
