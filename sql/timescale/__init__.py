"""The whole schema as SQL statements, for either licence: tables from `sql.tables`, the rest from the files beside.

Both licences have the same tables, columns and functions. They differ in how the candles are kept: continuous
aggregates on `timescale`, tables kept by triggers on `apache`. A file in `sql/views/` creates the one view of its name,
and one in `sql/analytics/` the view that analysts read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable, DropTable, SetColumnComment, SetTableComment

from sql.tables import metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Table
    from sqlalchemy.sql.ddl import ExecutableDDLElement

    from sql.database import License

FOLDER = Path(__file__).parent
VIEWS = FOLDER.parent / "views"
ANALYTICS = FOLDER.parent / "analytics"
FILES: dict[License, tuple[str, ...]] = {
    "apache": ("candles_apache.sql",),
    "timescale": ("candles_timescale.sql", "columnstore.sql", "refresh_policies.sql"),
}

_PIECE = re.compile(r"--[^\n]*|'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$|;|[^-'$;]+|.", re.DOTALL)


def create(license: License) -> Iterator[str]:  # noqa: A002
    """Yield the statements that create everything in an empty database with the extension."""
    yield from statements(FOLDER / "functions.sql")
    for table in _tables(license):
        yield from _table(table)
    yield from statements(FOLDER / "feed_rows.sql")
    yield from statements(FOLDER / "credits.sql")
    yield from statements(FOLDER / "keys.sql")
    yield from statements(FOLDER / "audit.sql")
    yield from statements(FOLDER / "positions.sql")
    yield from statements(FOLDER / "bitmaps.sql")
    yield from statements(FOLDER / "category_days.sql")
    yield from statements(FOLDER / "open_markets.sql")
    yield from statements(FOLDER / "storage.sql")
    for name in FILES[license]:
        yield from statements(FOLDER / name)
    yield from statements(FOLDER / "measures.sql")
    yield from statements(FOLDER / "settled.sql")
    yield from statements(FOLDER / "coverage.sql")
    yield from statements(FOLDER / "market_text.sql")
    yield from statements(FOLDER / "rights.sql")
    for path in sorted(VIEWS.glob("*.sql")):
        yield from statements(path)
    yield "create schema analytics"
    for path in sorted(ANALYTICS.glob("*.sql")):
        yield from statements(path)
    yield from statements(FOLDER / "initial_rows.sql")


def drop(license: License) -> Iterator[str]:  # noqa: A002
    """Yield the statements that drop what `create` made."""
    yield "drop schema analytics cascade"
    for path in sorted(VIEWS.glob("*.sql"), reverse=True):
        yield f"drop view {path.stem}"
    if license == "timescale":
        yield "select delete_job(job_id) from timescaledb_information.jobs where proc_name = 'refresh_candles'"
        yield from ("drop materialized view candles_1h", "drop materialized view candles_1m")
    yield from (_text(DropTable(table)) for table in reversed(_tables(license)))
    yield "drop type feed_row"
    for path in (
        FOLDER / "positions.sql",
        FOLDER / "coverage.sql",
        FOLDER / "rights.sql",
        FOLDER / "functions.sql",
        FOLDER / "credits.sql",
        FOLDER / "keys.sql",
        FOLDER / "audit.sql",
        FOLDER / "bitmaps.sql",
        FOLDER / "category_days.sql",
        FOLDER / "open_markets.sql",
        FOLDER / "measures.sql",
        FOLDER / "settled.sql",
        FOLDER / "market_text.sql",
        *(FOLDER / name for name in FILES[license]),
    ):
        yield from (f"drop {what}" for what in functions(path))


def functions(path: Path) -> list[str]:
    """Return the functions, procedures and aggregates of a file, with their arguments, dependent ones first."""
    made = re.findall(r"^create ((?:function|procedure|aggregate) \w+\s*\([^)]*\))", path.read_text(), re.MULTILINE)
    return made[::-1]


def statements(path: Path) -> Iterator[str]:
    """Split a file at its semicolons, except those inside strings, bodies and comments."""
    statement = ""
    for piece in _PIECE.finditer(path.read_text()):
        if piece[0] == ";":
            yield statement.strip()
            statement = ""
        elif not piece[0].startswith("--"):
            statement += piece[0]
    if statement.strip():
        yield statement.strip()


def _tables(license: License) -> list[Table]:  # noqa: A002
    """Return the tables in an order that foreign keys allow, without continuous aggregates."""
    return [
        table for table in metadata.sorted_tables if license == "apache" or table.info.get("timescale") != "aggregate"
    ]


def _table(table: Table) -> Iterator[str]:
    yield _text(CreateTable(table))
    if table.info.get("timescale") == "hypertable":
        # Our own indexes suffice; a default one on time alone would be redundant.
        yield (
            f"select create_hypertable('{table.name}', by_range('{table.info['time']}', {_chunk(table)}), "
            "create_default_indexes => false)"
        )
    if fillfactor := table.info.get("fillfactor"):
        yield f"alter table {table.name} set (fillfactor = {fillfactor})"
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        yield _text(CreateIndex(index))
    if table.comment:
        yield _text(SetTableComment(table))
    yield from (_text(SetColumnComment(column)) for column in table.columns if column.comment)


def _chunk(table: Table) -> str:
    """Return the width of a chunk as `by_range` takes it: an interval of time, or a number in the column's unit."""
    width = str(table.info["chunk"])
    return f"{width}::bigint" if width.isdecimal() else f"interval '{width}'"


def _text(element: ExecutableDDLElement) -> str:
    return str(element.compile(dialect=postgresql.dialect(paramstyle="named"))).strip()  # type: ignore[no-untyped-call]
