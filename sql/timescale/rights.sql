-- What roles other than the owner may do only in this form. Each function has the owner's rights and a fixed search path; who may
-- call it is in sql/roles/rights.py.

-- The secrets that sign cursors are no other setting's business: the one in use, former ones, and the first, which names the database.
alter table settings enable row level security;
create policy no_secrets on settings using (name not in ('cursor_secret', 'former_cursor_secrets', 'identity'));

-- Newest first: the first signs, any verifies.
create function cursor_secrets() returns setof text
language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$
select secret
from (
    select 0 as number, value #>> '{}' as secret from settings where name = 'cursor_secret'
    union all
    select number, former ->> 'secret'
    from settings, jsonb_array_elements(value) with ordinality as list (former, number)
    where name = 'former_cursor_secrets' and (former ->> 'until')::timestamptz > now()
) as known
order by number
$$;

-- Sign the site's page passes: derived, so that the site cannot sign cursors.
create function page_pass_secrets() returns setof bytea
language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$ select sha256(convert_to('passes of pages ' || secret, 'UTF8')) from cursor_secrets() as secret $$;

-- A text that no two databases share.
create function database_identity() returns text
language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$
select concat_ws(':', (
    select value #>> '{}' from settings where name in ('identity', 'cursor_secret') order by name = 'identity' desc limit 1
), oid)
from pg_database
where datname = current_database()
$$;

-- A key for a process of the site, without limits. The account's name is no email address, so nobody can register for it. Keys older than two hours are unused, so one of them is reused, which avoids a
-- new row for each hour and each process, and the others are revoked.
create function renew_site_key(new_hash bytea, new_prefix text) returns integer
language sql security definer set search_path = pg_catalog, public, pg_temp
as $$
with owner as (
    insert into accounts (email, app_name) values ('site', 'the site itself')
    on conflict (email) do update set app_name = excluded.app_name
    returning account_id
), spare as (
    select k.key_id from api_keys k join owner using (account_id)
    where k.created_at < now() - interval '2 hours'
    order by k.key_id limit 1
    for update of k skip locked
), again as (
    update api_keys k
    set key_hash = new_hash, prefix = new_prefix, tier = 'enterprise', created_at = now(), revoked_at = null
    from spare where k.key_id = spare.key_id
    returning k.key_id
), ended as (
    update api_keys k set revoked_at = now()
    from owner
    where k.account_id = owner.account_id and k.created_at < now() - interval '2 hours' and k.revoked_at is null
        and k.key_id not in (select key_id from spare)
), added as (
    insert into api_keys (account_id, key_hash, prefix, tier)
    select account_id, new_hash, new_prefix, 'enterprise' from owner where not exists (select from spare)
    returning key_id
)
select key_id from again union all select key_id from added
$$;

-- Drops the chunks whose every row is older, but none of the last 30 days of the audit trail. TimescaleDB lets only the owner do it.
create function drop_chunks_before(hypertable regclass, before timestamptz) returns bigint
language sql security definer set search_path = pg_catalog, public, pg_temp
as $$
select count(*) from public.drop_chunks(
    hypertable,
    older_than => case when hypertable = 'audit_log'::regclass then least(before, now() - interval '30 days') else before end
)
$$;

-- The same for the stream, whose chunks are ranges of numbers.
create function drop_stream_before(seq bigint) returns bigint
language sql security definer set search_path = pg_catalog, public, pg_temp
as $$ select count(*) from public.drop_chunks('stream_blocks', older_than => seq) $$;

-- Has the job run that refreshes the windows in candle_refreshes, within TimescaleDB's next look at its jobs (five seconds); one that
-- runs already sees new windows by itself. A job whose process was killed is made anew: TimescaleDB would let five minutes pass.
-- Community licence only.
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
$$;

revoke execute on function cursor_secrets() from public;
revoke execute on function page_pass_secrets() from public;
revoke execute on function database_identity() from public;
revoke execute on function renew_site_key(bytea, text) from public;
revoke execute on function drop_chunks_before(regclass, timestamptz) from public;
revoke execute on function drop_stream_before(bigint) from public;
revoke execute on function start_candles_refresh() from public;
