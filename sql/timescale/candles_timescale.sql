-- Candles as continuous aggregates, hours from minutes. Open and close are by seq, as trades share instants. Orchestration refreshes
-- them right after each load; what is not refreshed yet is computed when read (materialized_only = false), so that a reader is never
-- behind, but must always say from when on it wants candles. No data at first: filling cannot be done inside a transaction.

create materialized view candles_1m
with (timescaledb.continuous, timescaledb.materialized_only = false, timescaledb.create_group_indexes = false) as
select
    time_bucket(interval '1 minute', ts) as bucket, market_key, outcome,
    first(price, seq) as open, max(price) as high, min(price) as low, last(price, seq) as close,
    sum(size)::bigint as volume, sum(value_usd)::bigint as value_usd, count(*) as trades,
    min(seq) as first_seq, max(seq) as last_seq
from trades
group by 1, 2, 3
with no data;

create materialized view candles_1h
with (timescaledb.continuous, timescaledb.materialized_only = false, timescaledb.create_group_indexes = false) as
select
    time_bucket(interval '1 hour', bucket) as bucket, market_key, outcome,
    first(open, first_seq) as open, max(high) as high, min(low) as low, last(close, last_seq) as close,
    sum(volume)::bigint as volume, sum(value_usd)::bigint as value_usd, sum(trades)::bigint as trades,
    min(first_seq) as first_seq, max(last_seq) as last_seq
from candles_1m
group by 1, 2, 3
with no data;

create index candles_1m_market_idx on candles_1m (market_key, outcome, bucket desc);
create index candles_1h_market_idx on candles_1h (market_key, outcome, bucket desc);
-- Statistics of the last day read the hours of all markets.
create index candles_1h_bucket_idx on candles_1h (bucket desc);
-- The newest minutes of all markets are looked over every other minute.
create index candles_1m_bucket_idx on candles_1m using brin (bucket) with (autosummarize = on);

-- TimescaleDB keeps a log of what changed below the point up to which it has materialised, but a transaction that commits while that
-- point moves over its rows may leave nothing in the log: their candles would stay wrong for good. And the log does not say where to
-- look. So each insert notes to which hours it adds late, in its own transaction; orchestration refreshes them by force.
create function note_candles_due() returns trigger language plpgsql as $$
begin
    insert into candles_due (since, until)
    select min(ts), max(ts) from changed where ts < now() - interval '1 minute' group by time_bucket(interval '1 hour', ts);
    return null;
end
$$;

create trigger candles_due_added after insert on trades referencing new table as changed
for each statement execute function note_candles_due();

-- Refreshes the windows in candle_refreshes, one after the other, until none has come for a while. A job of TimescaleDB runs it with the
-- owner's rights (see start_candles_refresh); what a row says is compared, never executed. A refresh commits in between, which
-- forbids an exception handler and a fixed search path: names are written out, and the next run notes why the last one failed.
create procedure refresh_candles(job_id integer, config jsonb) language plpgsql as $$
declare
    asked public.candle_refreshes;
    idle interval := make_interval(secs => (config ->> 'idle_s')::float8);
    gives_up_at timestamptz := clock_timestamp() + idle;
begin
    update public.candle_refreshes
    set ended_at = clock_timestamp(), error = coalesce(
        (
            select e.err_message from timescaledb_information.job_errors e
            where e.job_id = refresh_candles.job_id and e.finish_time >= started_at
            order by e.finish_time desc limit 1
        ),
        'its process ended'
    )
    where started_at is not null and ended_at is null;
    delete from public.candle_refreshes where requested_at < now() - interval '1 hour';
    commit;
    loop
        update public.candle_refreshes set started_at = clock_timestamp()
        where refresh_id = (select refresh_id from public.candle_refreshes where started_at is null order by refresh_id limit 1)
        returning * into asked;
        commit;
        if asked.refresh_id is null then
            exit when clock_timestamp() >= gives_up_at;
            perform pg_sleep(0.01);
            continue;
        end if;
        -- In one piece where TimescaleDB can be told so: in some releases a refresh in batches passes over the newest bucket.
        if exists (select from pg_proc where proname = 'refresh_continuous_aggregate' and 'options' = any (proargnames)) then
            call public.refresh_continuous_aggregate(
                case asked.candles when 'candles_1m' then 'public.candles_1m'::regclass else 'public.candles_1h'::regclass end,
                asked.since, asked.until, force => asked.forced, options => '{"buckets_per_batch": 0}'::jsonb
            );
        else
            call public.refresh_continuous_aggregate(
                case asked.candles when 'candles_1m' then 'public.candles_1m'::regclass else 'public.candles_1h'::regclass end,
                asked.since, asked.until, force => asked.forced
            );
        end if;
        update public.candle_refreshes set ended_at = clock_timestamp() where refresh_id = asked.refresh_id;
        commit;
        gives_up_at := clock_timestamp() + idle;
    end loop;
end
$$;
