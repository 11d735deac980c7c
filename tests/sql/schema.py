"""A database's contents, read from its catalogue, so that two can be compared."""

from __future__ import annotations

COLUMNS = """
    select table_name, ordinal_position, column_name, data_type, udt_name
    from information_schema.columns
    where table_schema = 'public' and table_name <> 'alembic_version'
    order by 1, 2
"""

# TimescaleDB numbers the objects behind a continuous aggregate: the numbers are left out. Everything of ours, in schema
# public and for analysts: an extension's objects depend on it (`e`).
EVERYTHING = {
    "columns": """
        select table_name, ordinal_position, column_name, data_type, udt_name, is_nullable, column_default, is_identity,
            col_description(format('public.%I', table_name)::regclass, ordinal_position)
        from information_schema.columns where table_schema = 'public' and table_name <> 'alembic_version'
        order by 1, 2
    """,
    "relations": """
        select relname, relkind, relpersistence, reloptions, obj_description(oid, 'pg_class'),
            (select reloptions from pg_class as toast where toast.oid = pg_class.reltoastrelid)
        from pg_class
        where relnamespace = 'public'::regnamespace and relkind <> 'i' and relname <> 'alembic_version'
        order by 1
    """,
    "statistics": """
        select relname, attname, attstattarget from pg_attribute join pg_class on pg_class.oid = attrelid
        where attstattarget >= 0 and relkind = 'r' and relnamespace = 'public'::regnamespace
        order by 1, 2
    """,
    "indexes": """
        select tablename, indexname, indexdef from pg_indexes
        where schemaname = 'public' and tablename <> 'alembic_version'
        order by 1, 2
    """,
    "constraints": """
        select conrelid::regclass::text, conname, pg_get_constraintdef(oid)
        from pg_constraint
        where connamespace = 'public'::regnamespace and conname <> 'alembic_version_pkc'
        order by 1, 2
    """,
    "triggers": r"""
        select tgrelid::regclass::text, tgname, regexp_replace(pg_get_triggerdef(oid), $$\('\d+'\)$$, '(…)')
        from pg_trigger
        where not tgisinternal and tgrelid in (select oid from pg_class where relnamespace = 'public'::regnamespace)
        order by 1, 2
    """,
    "functions": """
        select proname, pg_get_functiondef(oid)
        from pg_proc
        where pronamespace = 'public'::regnamespace and prokind in ('f', 'p')
            and not exists (select from pg_depend where objid = pg_proc.oid and deptype = 'e')
        order by 1, 2
    """,
    "views": r"""
        select
            schemaname, viewname,
            regexp_replace(definition, '(_materialized_hypertable_|cagg_watermark\()\d+', '\1…', 'g')
        from pg_views where schemaname in ('public', 'analytics') order by 1, 2
    """,
    "grants": """
        select relnamespace::regnamespace::text, relname, grantee::regrole::text, privilege_type
        from pg_class, aclexplode(relacl)
        where relnamespace in (select oid from pg_namespace where nspname in ('public', 'analytics'))
            and grantee <> relowner and relname <> 'alembic_version'
            and not exists (select from pg_depend where objid = pg_class.oid and deptype = 'e')
        order by 1, 2, 3, 4
    """,
    "policies": """
        select p.tablename, p.policyname, p.permissive, p.roles::text, p.cmd, p.qual, p.with_check, c.relrowsecurity
        from pg_policies p join pg_class c on c.oid = format('%I.%I', p.schemaname, p.tablename)::regclass
        where p.schemaname = 'public' order by 1, 2
    """,
    "dimensions": """
        select hypertable_name, column_name, time_interval, integer_interval, num_partitions
        from timescaledb_information.dimensions
        where hypertable_schema = 'public'
        order by 1
    """,
    "types": """
        select typname, (
            select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)
            from pg_attribute where attrelid = typrelid
        )
        from pg_type
        where typnamespace = 'public'::regnamespace
            and (typtype in ('d', 'e') or (select relkind = 'c' from pg_class where pg_class.oid = typrelid))
            and not exists (select from pg_depend where objid = pg_type.oid and deptype = 'e')
        order by 1
    """,
}


def describe(conn):
    """Return everything of ours, by kind, except Alembic's own table."""
    return {kind: conn.execute(query).fetchall() for kind, query in EVERYTHING.items()}
