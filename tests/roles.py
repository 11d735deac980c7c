"""Logins of the tests' server, by which processes and pools connect with the rights of their role."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sql.roles import logins
from sql.roles.rights import API, PIPELINE, SITE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

PASSWORD = "of-the-tests"


def login_url(url: str, role: str) -> str:
    """Return the URL of the same database for a role's login."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    return urlsplit(url)._replace(netloc=f"{role}_login:{PASSWORD}@{host}").geturl()


def ensure(admin: psycopg.Connection, url: str) -> None:
    """Create the logins; on a given server, other processes may do so at the same time."""
    admin.execute("select pg_advisory_lock(hashtextextended('presage tests: logins', 0))")
    here = urlsplit(url)._replace(path=f"/{admin.info.dbname}").geturl()
    logins.ensure(admin, {role: login_url(here, role) for role in (PIPELINE, API, SITE)})
    admin.execute("select pg_advisory_unlock(hashtextextended('presage tests: logins', 0))")


@contextmanager
def temporary_role(admin: psycopg.Connection, options: str) -> Iterator[str]:
    """Yield a role of the server with a name that no other test has."""
    name = f"test_{secrets.token_hex(4)}"
    admin.execute(f"create role {name} {options}")
    try:
        yield name
    finally:
        admin.execute(f"drop role {name}")
