"""Continuous aggregates belong to the owner of the tables, whose job refreshes what the pipeline asks for."""

from alembic import op

from sql import migrate

revision, down_revision = "0020", "0019"

TABLE = (
    """
create table candle_refreshes (
    refresh_id bigint generated always as identity,
    candles text not null,
    since timestamp with time zone not null,
    until timestamp with time zone not null,
    forced boolean not null,
    requested_at timestamp with time zone default now() not null,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    error text,
    primary key (refresh_id),
    constraint candle_refreshes_candles_check check (candles in ('candles_1m', 'candles_1h')),
    constraint candle_refreshes_window_check check (until - since between interval '1 minute' and interval '1 day')
)
    """,
    """
comment on table candle_refreshes is 'Windows of candles that the pipeline asks to be refreshed: a job of the owner''s does it, as only an aggregate''s owner may. Whoever asked waits for the end and deletes the row. Empty on the Apache licence'
    """,
    "comment on column candle_refreshes.forced is 'All of the window, not only what TimescaleDB knows to be stale'",
    "comment on column candle_refreshes.error is 'Why it failed'",
)
START = """
create function start_candles_refresh() returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
as $$
declare
    job record;
begin
    select job_id, job_status, isfinite(last_run_started_at) and last_run_status is null
        and last_run_started_at < now() - interval '10 seconds' as killed
    into job
    from timescaledb_information.jobs
    left join timescaledb_information.job_stats using (job_id)
    where proc_schema = 'public' and proc_name = 'refresh_candles' and owner = quote_ident(current_user)::regrole;
    if job.job_status = 'Running' then
        return;
    end if;
    if job.killed then
        perform public.delete_job(job.job_id);
    end if;
    if job.job_id is null or job.killed then  -- a new one is run at once
        perform public.add_job('public.refresh_candles', interval '1 day', config => '{"idle_s": 2}', fixed_schedule => false);
    else
        perform public.alter_job(job.job_id, next_start => now());
    end if;
end
$$
"""
REFRESH = """
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
$$
"""
# With what TimescaleDB put behind them. Before this revision, the pipeline owned them.
TAKE_BACK = """
do $$
declare
    kept text;
begin
    for kept in select viewname from pg_views where schemaname = 'public' and viewowner = 'presage_pipeline' loop
        execute format('alter materialized view %I owner to current_user', kept);
    end loop;
end
$$
"""


def upgrade() -> None:
    for statement in TABLE:
        op.execute(statement)
    op.execute(START)
    op.execute("revoke execute on function start_candles_refresh() from public")
    if migrate.current_license() == "timescale":
        op.execute(TAKE_BACK)
        op.execute(REFRESH)


def downgrade() -> None:
    # The release before gives the aggregates to the pipeline when it migrates.
    if migrate.current_license() == "timescale":
        op.execute("select delete_job(job_id) from timescaledb_information.jobs where proc_name = 'refresh_candles'")
        op.execute("drop procedure refresh_candles(integer, jsonb)")
    op.execute("drop function start_candles_refresh()")
    op.execute("drop table candle_refreshes")
