"""Every named query is valid for the database, under either licence."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from sql import database, queries
from tests.community import CommunityError

ROOT = Path(__file__).parents[2]
# Statements that a server parses only when it runs them.
UTILITIES = ("analyze", "call", "copy", "create", "lock", "notify", "set", "truncate")


TOPICS = sorted(file.stem for file in queries.FOLDER.glob("*.sql"))


def every():
    """Return every query by its name."""
    for topic in TOPICS:
        found = getattr(queries, topic)
        for name in found.available_queries:
            if not name.endswith("_cursor"):  # the same query again
                yield f"{topic}.{name}", getattr(found, name)


def named():
    """Return every query's name and text, its parameters numbered."""
    return ((name, numbered(query.sql)) for name, query in every())


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
    silent = [name for name, query in every() if not (query.__doc__ or "").strip()]

    assert silent == []


def test_a_topic_is_read_once_and_when_it_is_imported():
    program = """
import sys
from sql.queries import feed, feed as again
print(feed is again, *({"feed", "markets"} & vars(sys.modules["sql.queries"]).keys()))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)

    assert done.stdout.split() == ["True", "feed"]


@pytest.mark.parametrize("name", ["nothing", "../roles", "__path__x"])
def test_what_is_no_topic_is_no_attribute(name):
    with pytest.raises(AttributeError, match=re.escape(name)):
        getattr(queries, name)


def test_coverage_is_planned_once_for_all_exchanges(database_url):
    """Its plan takes longer to make than to execute, and one for a given exchange looks cheaper to the server."""
    with database.connect(database_url) as conn:
        conn.prepare_threshold = 0
        for n in range(20):
            queries.coverage.kinds(conn, exchange=("polymarket", "kalshi")[n % 2])
        conn.prepare_threshold = None
        plans = "select generic_plans from pg_prepared_statements where statement like '%coverage_record%'"
        ((planned_once,),) = conn.execute(plans).fetchall()

    assert planned_once > 10
