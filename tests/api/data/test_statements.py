"""Named queries on a connection, without a cursor: the same answers as with one."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace

import psycopg
import pytest
from aiosql.types import SQLOperationType

from api.data import statements
from api.data.pool import Pool
from api.data.statements import Statements, numbered, run

NOW = dt.datetime(2026, 5, 1, 12, 30, 15, 123456, tzinfo=dt.UTC)
EVERYTHING = (
    "select %(whole)s::bigint + 1, %(text)s || '%%', %(moment)s::timestamptz, %(many)s::text[], %(some)s::int[], "
    "%(nothing)s::text is null, %(yes)s::boolean, %(bytes)s::bytea, %(text)s"
)
VALUES = {
    "whole": 2**40,
    "text": "ä'€\\",
    "moment": NOW,
    "many": ["a", "b,c"],
    "some": [1, 2],
    "nothing": None,
    "yes": True,
    "bytes": b"\0\xff",
}


@pytest.fixture
def lent(database_url):
    pool = Pool(database_url, 1)
    with pool.connection() as conn:
        yield conn
    pool.close()


def query(text, operation=SQLOperationType.SELECT):
    return SimpleNamespace(sql=text, operation=operation)


def test_parameters_are_numbered_in_their_order():
    assert numbered("select %(b)s, %(a)s, %(b)s, '%%'") == (b"select $1, $2, $1, '%'", ("b", "a"))


def test_values_go_and_come_as_with_a_cursor(lent):
    with_cursor = lent.execute(EVERYTHING, VALUES).fetchall()

    assert Statements(lent).rows(EVERYTHING, VALUES) == with_cursor
    assert with_cursor[0][:3] == (2**40 + 1, "ä'€\\%", NOW)


@pytest.mark.parametrize(
    ("operation", "some", "none"),
    [
        (SQLOperationType.SELECT, [(1, "a"), (2, "b")], []),
        (SQLOperationType.SELECT_ONE, (1, "a"), None),
        (SQLOperationType.SELECT_VALUE, 1, None),
    ],
)
def test_a_query_gives_what_its_name_says(lent, operation, some, none):
    text = "select * from (values (1, 'a'), (2, 'b')) as v (n, t) where n < %(below)s order by n"

    assert run(lent, query(text, operation), {"below": 9}) == some
    assert run(lent, query(text, operation), {"below": 0}) == none


def test_a_statement_is_prepared_once_for_each_combination_of_types(lent):
    for value in ("a", "b", None, "c", None):
        run(lent, query("select %(value)s::text"), {"value": value})
    for value in (1, 2**40):
        run(lent, query("select %(value)s::bigint"), {"value": value})

    prepared = lent.execute("select count(*) from pg_prepared_statements where name like 'presage%'").fetchone()
    assert prepared[0] <= 3


def test_no_more_statements_are_kept_than_agreed(lent, monkeypatch):
    monkeypatch.setattr(statements, "MAX_STATEMENTS", 3)
    for number in (1, 2, 3, 4, 5, 1, 2):
        assert run(lent, query(f"select {number} + %(one)s::bigint"), {"one": 1}) == [(number + 1,)]

    kept = lent.execute("select count(*) from pg_prepared_statements where name like 'presage%'").fetchone()
    assert kept == (3,)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("select nothing from nowhere where %(value)s = 1", psycopg.errors.UndefinedTable),
        ("select 1 / (%(value)s::int - 1)", psycopg.errors.DivisionByZero),
    ],
)
def test_a_failure_is_the_same_error_and_leaves_the_connection_well(lent, text, error):
    for _ in range(2):
        with pytest.raises(error):
            run(lent, query(text), {"value": 1})

    assert run(lent, query("select %(value)s::int"), {"value": 7}) == [(7,)]


def test_statements_that_are_gone_are_prepared_again(lent):
    assert run(lent, query("select %(value)s::int"), {"value": 1}) == [(1,)]
    lent.execute("deallocate all")

    assert run(lent, query("select %(value)s::int"), {"value": 2}) == [(2,)]


def test_a_query_that_takes_too_long_is_cancelled(database_url):
    pool = Pool(database_url, 1, {"statement_timeout": 300})
    with pool.connection() as conn, pytest.raises(psycopg.errors.QueryCanceled):
        run(conn, query("select pg_sleep(%(s)s)"), {"s": 5})
    pool.close()


def test_a_dead_connection_is_replaced(database_url, conn):
    pool = Pool(database_url, 1)
    asked = query("select pg_backend_pid() + 0 * %(value)s::int", SQLOperationType.SELECT_VALUE)
    first = pool.read(lambda lent: run(lent, asked, {"value": 1}))
    conn.execute("select pg_terminate_backend(%s, 5000)", [first])

    second = pool.read(lambda lent: run(lent, asked, {"value": 1}))

    assert second != first
    pool.close()
