"""Definition of suites as plain data: each check is an expectation in Great Expectations' terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from sql.database import MICRO

if TYPE_CHECKING:
    from collections.abc import Callable

Severity = Literal["warn", "fail"]

PRICE_MAX = MICRO
SIZE_MAX = 10**15  # a thousand million shares
ROWS = "unexpected_rows_expectation"


@dataclass(frozen=True)
class Check:
    """A condition on a table's rows; a row that breaks it makes the stage late or stale, by the check's severity."""

    name: str
    description: str
    type: str
    arguments: dict[str, Any]
    severity: Severity = "fail"

    def at(self, severity: Severity) -> Check:
        """Return the same check with another severity."""
        return replace(self, severity=severity)


By = Literal["time", "number", "blocks", "of_blocks", "whole"]
TAKES: dict[By, tuple[str, ...]] = {
    "time": ("since",),
    "number": ("after", "most"),
    "blocks": ("seen", "most"),
    "of_blocks": (),
    "whole": (),
}


@dataclass(frozen=True)
class Suite:
    """The checks of a table, and how its new rows are found: by time, unless another way is set.

    The alternatives: a growing number, the chain's new blocks, the rows of those blocks, or all rows each time.
    """

    table: str
    stage: str
    asset: str
    """The asset that shows the check in Dagster."""
    checks: tuple[Check, ...]
    by: By = "time"
    most: int | None = None
    """With numbers and blocks: max rows per pass; the next pass continues."""
    stored_in: str | None = None
    """The table that has the rows, if another: packed."""
    by_market: bool = False
    """Whether a pass may check the rows of some of the markets: they are as many as the feed's."""
    lay_out: Callable[..., int] | None = None
    """Copies the new rows into the temporary table, if not the query of the table's name."""

    @property
    def takes(self) -> tuple[str, ...]:
        """Return the parameters of the query that finds the rows."""
        return TAKES[self.by] + (("from_group", "groups") if self.by_market and self.by == "time" else ())

    @property
    def fresh(self) -> str:
        """Return the name of the temporary table of new rows."""
        return f"fresh_{self.table}"

    @property
    def name(self) -> str:
        """Return the name of Dagster's check."""
        return f"{self.table}_quality"


SCHEMA = Check("columns", "The table has its declared columns.", "expect_table_columns_to_match_set", {})
"""Checked first: without it the rows cannot be validated."""


def between(column: str, low: int, high: int, description: str = "", *, severity: Severity = "fail") -> Check:
    """Expect a column's values within bounds, both inclusive; null is allowed."""
    return Check(
        column,
        description or f"`{column}` is between {low:,} and {high:,}.",
        "expect_column_values_to_be_between",
        {"column": column, "min_value": low, "max_value": high},
        severity,
    )


def price(column: str, *, most: int = PRICE_MAX, severity: Severity = "fail") -> Check:
    """Expect a possible price."""
    return between(column, 1, most, f"`{column}` is above 0 and at most {most / 1e6:g}.", severity=severity)


def amount(column: str, *, least: int = 0, severity: Severity = "fail") -> Check:
    """Expect a possible amount: at most a thousand million shares or dollars."""
    return between(column, least, SIZE_MAX, severity=severity)


def one_of(column: str, *values: str | int, severity: Severity = "fail") -> Check:
    """Expect one of these values; null is allowed."""
    return Check(
        column,
        f"`{column}` is one of {', '.join(map(str, values))}.",
        "expect_column_values_to_be_in_set",
        {"column": column, "value_set": list(values)},
        severity,
    )


def matches(column: str, regex: str, description: str, *, severity: Severity = "fail") -> Check:
    """Expect text that matches a pattern."""
    return Check(
        column, description, "expect_column_values_to_match_regex", {"column": column, "regex": regex}, severity
    )


def unique(name: str, *columns: str, severity: Severity = "fail") -> Check:
    """Expect that no two of the new rows are equal in all of these columns."""
    description = f"No two rows have the same {', '.join(f'`{column}`' for column in columns)}."
    if len(columns) == 1:
        return Check(name, description, "expect_column_values_to_be_unique", {"column": columns[0]}, severity)
    return Check(name, description, "expect_compound_columns_to_be_unique", {"column_list": list(columns)}, severity)


def holds(name: str, description: str, condition: str, *, severity: Severity = "fail") -> Check:
    """Expect a condition on a row, named `fresh`, to be true; both false and null fail."""
    return Check(name, description, ROWS, {"condition": condition}, severity)


def no_rows(name: str, description: str, query: str, *, severity: Severity = "fail") -> Check:
    """Expect a query, named as in sql/queries/quality_rows.sql, to return no rows."""
    return Check(name, description, ROWS, {"query": query}, severity)


# --- Checks used for many tables ---


def of_market(*, outcome: bool = True) -> Check:
    """Expect that the row's market is in the catalogue, and has this outcome."""
    also = " and fresh.outcome >= 0 and fresh.outcome < cardinality(m.outcomes)" if outcome else ""
    return holds(
        "market",
        "The catalogue knows the market" + (", and it has such an outcome." if outcome else "."),
        f"exists (select from markets m where m.market_key = fresh.market_key{also})",
    )


def not_ahead(column: str = "ts", *, severity: Severity = "fail") -> Check:
    """Expect no timestamp more than ten minutes ahead of our clock."""
    return holds(
        "not_ahead",
        f"`{column}` is at most ten minutes in the future.",
        f"fresh.{column} is null or fresh.{column} < now() + interval '10 minutes'",
        severity=severity,
    )


def in_order() -> Check:
    """Expect `seq` to begin with a time that is not before the row's timestamp."""
    return holds("order", "`seq` begins with a time that is not before `ts`.", "seq >> 20 >= as_ms(ts)")


def of_block() -> Check:
    """Expect that a row's block is stored, and has the same timestamp."""
    return holds(
        "block",
        "The block is stored, and has the same timestamp.",
        "exists (select from chain_blocks b where b.number = fresh.block_number and b.ts = fresh.ts)",
    )


def of_token() -> Check:
    """Expect that a row's token, if it has one, is known by name."""
    return holds(
        "token",
        "The token is one that the chain has named.",
        "token_key is null or exists (select from chain_tokens k where k.token_key = fresh.token_key)",
    )


def of_length(column: str, octets: int) -> Check:
    """Expect a length in bytes, or null."""
    return holds(column, f"`{column}` has {octets} bytes.", f"{column} is null or octet_length({column}) = {octets}")


def whole_book(when: str = "true") -> tuple[Check, ...]:
    """Expect that the levels of a full book are in order, positive, and not crossed."""
    return (
        holds(
            "levels",
            "Every level has a price within 0 and 1 and a size above 0; levels are unique and in order.",
            f"""
            not ({when}) or (
                cardinality(bid_prices) = cardinality(bid_sizes) and cardinality(ask_prices) = cardinality(ask_sizes)
                and bid_prices = array(select distinct price from unnest(bid_prices) as price order by price desc)
                and ask_prices = array(select distinct price from unnest(ask_prices) as price order by price)
                and not (0 >= any(bid_prices || ask_prices)) and not ({PRICE_MAX} <= any(bid_prices || ask_prices))
                and not (0 >= any(bid_sizes || ask_sizes)) and not ({SIZE_MAX} < any(bid_sizes || ask_sizes))
            )
            """,  # noqa: S608 (of our own words only)
        ),
        holds(
            "not_crossed",
            "The best bid is below the best ask.",
            f"not ({when}) or bid_prices[1] < ask_prices[1] or 0 in (cardinality(bid_prices), cardinality(ask_prices))",
        ),
    )
