"""Every named query is valid for the database, under either licence."""

from __future__ import annotations

import re

import psycopg
import pytest
from aiosql.queries import Queries

from sql import database, queries
from tests.community import CommunityError

# Statements that a server parses only when it runs them.
UTILITIES = ("analyze", "call", "copy", "create", "lock", "notify", "set", "truncate")


def named():
    """Return every query's name and text, its parameters numbered."""
    for topic, found in vars(queries).items():
        if isinstance(found, Queries):
            for name in found.available_queries:
                if not name.endswith("_cursor"):  # the same query again
                    yield f"{topic}.{name}", numbered(getattr(found, name).sql)


def numbered(sql):
    parameters = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql)))
    sql = re.sub(r"%\((\w+)\)s", lambda match: f"${parameters.index(match[1]) + 1}", sql)
    return sql.replace("%%", "%").strip().rstrip(";")


def misunderstood(execute):
    """Return the queries that the server refuses, and why."""
    texts = {name: sql for name, sql in named() if not sql.lower().startswith(UTILITIES)}
    refused = []
    for sql in (sql for _, sql in named() if sql.lower().startswith("create temp")):
        execute(sql)  # other queries read from it
    for name, sql in texts.items():
        try:
            execute(f'prepare "{name}" as {sql}')
        except (psycopg.Error, CommunityError) as error:
            refused.append(f"{name}: {error}")
    assert texts
    return refused


@pytest.mark.parametrize("licence", ["apache", "timescale"])
def test_every_query_is_understood(request, licence):
    if licence == "timescale":
        assert misunderstood(request.getfixturevalue("community").execute) == []
    else:
        with database.connect(request.getfixturevalue("database_url"), autocommit=True) as conn:
            assert misunderstood(conn.execute) == []


def test_every_query_says_what_it_is_for():
    silent = [
        f"{topic}.{name}"
        for topic, found in vars(queries).items()
        if isinstance(found, Queries)
        for name in found.available_queries
        if not name.endswith("_cursor") and not (getattr(found, name).__doc__ or "").strip()
    ]

    assert silent == []
