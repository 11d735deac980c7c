"""Checks of the database's roles: that they exist, have their rights and no more, and are used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.diagnosis import Finding

if TYPE_CHECKING:
    import psycopg

OF_PROCESSES = ("presage", "presage api audit", "presage site")  # application names


def roles(conn: psycopg.Connection[Any]) -> Finding:
    """Check roles and grants, and that no process connects as the owner."""
    from sql.roles import grants

    if missing := grants.missing_roles(conn):
        commands = " ".join(f"create role {role} nologin;" for role in missing)
        return Finding(
            "roles", "warn", f"missing: {', '.join(missing)}", f"as a superuser: {commands} then run `presage migrate`"
        )
    lacking, extra = grants.differences(conn)
    if differing := [f"no {each}" for each in sorted(lacking)] + [f"also {each}" for each in sorted(extra)]:
        more = f", and {len(differing) - 3} more" if len(differing) > 3 else ""
        found = f"grants differ from this release's: {', '.join(differing[:3])}{more}"
        return Finding("roles", "fail" if extra else "warn", found, "run `presage migrate` as the tables' owner")
    as_owner = conn.execute(
        "select count(*) from pg_stat_activity where datname = current_database() and usename = session_user"
        " and application_name = any(%s)",
        [[*OF_PROCESSES]],
    ).fetchone()
    if as_owner is not None and as_owner[0]:
        remedy = "set PRESAGE_PIPELINE_DATABASE_URL, PRESAGE_API_DATABASE_URL and PRESAGE_SITE_DATABASE_URL"
        return Finding("roles", "warn", f"{as_owner[0]} connections of processes have the owner's rights", remedy)
    return Finding("roles", "ok", "pipeline, API, site and analysts have the rights of this release, and no others")
