"""Validation of new rows with Great Expectations, inside the database."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import sqlalchemy as sa

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about its own internals: deprecated Python modules, its data classes
    import great_expectations as gx
    from great_expectations.core import ExpectationSuite
    from great_expectations.data_context.types.base import ProgressBarsConfig

from orchestration.quality.expecting import ROWS
from sql import database
from sql.queries import quality_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import psycopg

    from orchestration.quality.expecting import Check, Suite

MAX_TOLD = 200  # rows of a failed check that Great Expectations returns, at most
MAX_LEVELS_SHOWN = 10  # max levels of a book shown
MAX_TEXT_CHARS = 300  # max characters of a text


class FailedRows(NamedTuple):
    """How many rows failed a check, and some of them, in JSON-compatible types."""

    number: int = 0
    rows: Sequence[dict[str, Any]] = ()


# A single connection with the temporary tables and one open transaction: it sees one state of the database.
SINGLE_CONNECTION = {
    "poolclass": sa.StaticPool,
    "isolation_level": "AUTOCOMMIT",
    "skip_autocommit_rollback": True,
    "pool_reset_on_return": None,
}
# For expectations on columns a summary suffices; for those on rows only the complete result has the rows.
SUMMARY = {"result_format": "SUMMARY", "include_unexpected_rows": True, "partial_unexpected_count": MAX_TOLD}
COMPLETE = {"result_format": "COMPLETE"}


class Validator:
    """Validates rows over one connection, in which the caller has prepared them."""

    def __init__(self, url: str) -> None:
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        address = database.sqlalchemy_url(url)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own PostgreSQL data source does not accept a socket's address
            self._source = context.data_sources.add_sql("presage", connection_string=address, kwargs=SINGLE_CONNECTION)
        self._source.get_engine().dispose()  # its own engine, used only to test the address
        self._engine = self._source.get_execution_engine().engine
        # Great Expectations retries after a fault, and hides the original exception.
        self._faults: list[str] = []
        sa.event.listen(self._engine, "handle_error", lambda met: self._faults.append(str(met.original_exception)))
        self.conn = cast("psycopg.Connection[Any]", self._engine.raw_connection().driver_connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.conn.close()
        self._engine.dispose()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the database for the duration of a block, whatever is written meanwhile."""
        self.conn.execute("begin isolation level repeatable read")
        try:
            yield
        finally:
            self.conn.rollback()

    def judge(self, suite: Suite, rows: int) -> list[tuple[Check, FailedRows]]:
        """Validate the rows prepared for a suite; with no rows, everything holds."""
        if not rows:
            return [(check, FailedRows()) for check in suite.checks]
        asset = self._source.add_query_asset(suite.table, query=f"select * from {suite.fresh}")  # noqa: S608 (our own name)
        batch = asset.add_batch_definition_whole_table("fresh").get_batch()
        found: dict[str, FailedRows] = {}
        for of_rows, result_format in ((False, SUMMARY), (True, COMPLETE)):
            checks = [check for check in suite.checks if (check.type == ROWS) == of_rows]
            expected = ExpectationSuite(suite.table, expectations=[expectation(suite, check) for check in checks])
            for result in batch.validate(expected, result_format=result_format).results:
                name = cast("Any", result.expectation_config).meta["check"]
                if result.exception_info.get("raised_exception", True) and not result.success:
                    raise RuntimeError(f"{suite.table}.{name}: {next(iter(self._faults), result.exception_info)}")
                found[name] = _found(result, of_rows=of_rows)
        return [(check, found[check.name]) for check in suite.checks]


def _found(result: Any, *, of_rows: bool) -> FailedRows:
    if result.success:
        return FailedRows()
    if of_rows:
        count, rows = result.result["observed_value"], result.result["details"]["unexpected_rows"]
    else:
        count, rows = result.result["unexpected_count"], result.result["unexpected_rows"]
    return FailedRows(int(count), [_shown(row) for row in islice(rows, MAX_TOLD)])


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row in JSON-compatible types."""
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return "0x" + bytes(value).hex()
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT_CHARS else f"{value[:MAX_TEXT_CHARS]}…"
    if isinstance(value, list):
        return [_plain(each) for each in value[:MAX_LEVELS_SHOWN]] + (
            [f"… {len(value)} in all"] if len(value) > MAX_LEVELS_SHOWN else []
        )
    if value is None or isinstance(value, bool | int | float | dict):
        return value
    return value.isoformat() if isinstance(value, datetime) else str(value)


def expectation(suite: Suite, check: Check) -> dict[str, Any]:
    """Convert a check into Great Expectations' configuration."""
    severity = "critical" if check.severity == "fail" else "warning"
    return {
        "type": check.type,
        "kwargs": _arguments(suite, check),
        "severity": severity,
        "meta": {"check": check.name},
        "description": check.description,
    }


def _arguments(suite: Suite, check: Check) -> dict[str, Any]:
    if check.type != ROWS:
        return check.arguments
    if "query" in check.arguments:
        query = getattr(quality_rows, check.arguments["query"]).sql.replace("%%", "%").rstrip("; \n")
    else:
        query = (
            f"select fresh.* from {suite.fresh} as fresh where not coalesce(({check.arguments['condition']}), false)"  # noqa: S608
        )
    # Literal braces are doubled. The library requires its batch name in the query: a comment satisfies it.
    return {"unexpected_rows_query": "/* {batch} */ " + query.replace("{", "{{").replace("}", "}}")}
