"""Runs named queries as prepared statements, directly on the connection.

A psycopg cursor costs as much as everything else this process does for a request (about 30 µs). This module does the
cursor's work with psycopg's own dumpers, loaders and errors; statements are prepared once per connection.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from aiosql.types import SQLOperationType
from psycopg import errors, generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from psycopg.pq.abc import PGresult

    from api.data.pool import Connection

MAX_STATEMENTS = 200  # per connection; each statement keeps its plan

_PARAMETER = re.compile(r"%\((\w+)\)s")


@cache
def numbered(text: str) -> tuple[bytes, tuple[str, ...]]:
    """Convert a query to `$n` placeholders; return it with its parameter names in order.

    >>> numbered("select %(b)s, %(a)s, %(b)s, '%%'")
    (b"select $1, $2, $1, '%'", ('b', 'a'))
    """
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    query = _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", text)
    return query.replace("%%", "%").encode(), names


class Statements:
    """The prepared statements of one connection, which the caller uses exclusively."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._names: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._made = 0
        self._dumped, self._loaded = (
            Transformer(conn),
            Transformer(conn),
        )  # each caches its dumpers or loaders, so both are kept

    def rows(self, text: str, arguments: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run a query and return its rows."""
        try:
            return self._rows(text, arguments)
        except errors.InvalidSqlStatementName:  # after a rollback, psycopg deallocates all of a session's statements
            self._names.clear()
            return self._rows(text, arguments)

    def _rows(self, text: str, arguments: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        query, names = numbered(text)
        dumped = self._dumped
        values = dumped.dump_sequence([arguments[name] for name in names], [PyFormat.AUTO] * len(names))
        types = tuple(dumped.types or ())
        name = self._names.get((query, types)) or self._prepare(query, types)
        self._conn.pgconn.send_query_prepared(name, values, param_formats=dumped.formats)
        result = self._result()
        self._loaded.set_pgresult(result)
        return self._loaded.load_rows(0, result.ntuples, tuple)

    def _prepare(self, query: bytes, types: tuple[int, ...]) -> bytes:
        if len(self._names) >= MAX_STATEMENTS:
            oldest = self._names.pop(next(iter(self._names)))
            self._conn.execute(b"deallocate " + oldest)
        self._made += 1
        name = b"presage_%d" % self._made
        self._conn.pgconn.send_prepare(name, query, param_types=types)
        self._result()
        self._names[query, types] = name
        return name

    def _result(self) -> PGresult:
        result: PGresult = self._conn.wait(generators.execute(self._conn.pgconn))[-1]
        if result.status == ExecStatus.FATAL_ERROR:
            raise errors.error_from_result(result, self._conn.info.encoding)
        return result


def run(conn: Any, query: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Run a query of `sql.queries`; return one value, one row or a list of rows, as its operation says."""
    statements = conn.__dict__.get("statements")
    if statements is None:
        statements = conn.statements = Statements(conn)
    rows = statements.rows(query.sql, arguments)  # type: ignore[attr-defined]
    match query.operation:  # type: ignore[attr-defined]
        case SQLOperationType.SELECT_ONE:
            return rows[0] if rows else None
        case SQLOperationType.SELECT_VALUE:
            return rows[0][0] if rows else None
        case SQLOperationType.SELECT:
            return rows
        case other:
            raise TypeError(f"a query of kind {other} returns no rows")
