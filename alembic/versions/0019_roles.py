"""What roles other than the owner may do only through a function, and whose setting is whose secret."""

from alembic import op

revision, down_revision = "0019", "0018"

FUNCTIONS = (
    "cursor_secrets()",
    "page_pass_secrets()",
    "database_identity()",
    "renew_site_key(bytea, text)",
    "drop_chunks_before(regclass, timestamptz)",
    "drop_stream_before(bigint)",
)


def upgrade() -> None:
    op.execute("alter table settings enable row level security")
    op.execute(
        "create policy no_secrets on settings using (name not in ('cursor_secret', 'former_cursor_secrets', 'identity'))"
    )
    op.execute("""
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
$$
""")
    op.execute("""
create function page_pass_secrets() returns setof bytea
language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$ select sha256(convert_to('passes of pages ' || secret, 'UTF8')) from cursor_secrets() as secret $$
""")
    op.execute("""
create function database_identity() returns text
language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$
select concat_ws(':', (
    select value #>> '{}' from settings where name in ('identity', 'cursor_secret') order by name = 'identity' desc limit 1
), oid)
from pg_database
where datname = current_database()
$$
""")
    op.execute("""
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
$$
""")
    op.execute("""
create function drop_chunks_before(hypertable regclass, before timestamptz) returns bigint
language sql security definer set search_path = pg_catalog, public, pg_temp
as $$
select count(*) from public.drop_chunks(
    hypertable,
    older_than => case when hypertable = 'audit_log'::regclass then least(before, now() - interval '30 days') else before end
)
$$
""")
    op.execute("""
create function drop_stream_before(seq bigint) returns bigint
language sql security definer set search_path = pg_catalog, public, pg_temp
as $$ select count(*) from public.drop_chunks('stream_blocks', older_than => seq) $$
""")
    for function in FUNCTIONS:
        op.execute(f"revoke execute on function {function} from public")


def downgrade() -> None:
    # The grants themselves are made after each migration, by sql/roles. The roles stay: other databases use them.
    # An aggregate that is kept by refreshing belongs to the pipeline, and with it everything that TimescaleDB put behind it.
    op.execute("""
do $$
declare
    kept text;
    role text;
begin
    for kept in select viewname from pg_views where schemaname = 'public' and viewowner = 'presage_pipeline' loop
        execute format('alter materialized view %I owner to current_user', kept);
    end loop;
    for role in select rolname from pg_roles where rolname in ('presage_pipeline', 'presage_api', 'presage_site', 'presage_analyst') loop
        execute format('revoke all on all tables in schema public, analytics from %I', role);
        execute format('revoke all on all sequences in schema public from %I', role);
        execute format('revoke all on all functions in schema public from %I', role);
        execute format('revoke all on schema public, analytics from %I', role);
        if (select rolsuper from pg_roles where rolname = current_user) then  -- only a superuser had granted it
            execute format('revoke all on function pg_ls_archive_statusdir() from %I', role);
        end if;
    end loop;
end
$$
""")
    for function in reversed(FUNCTIONS):
        op.execute(f"drop function {function}")
    op.execute("drop policy no_secrets on settings")
    op.execute("alter table settings disable row level security")
