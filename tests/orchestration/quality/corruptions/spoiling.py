"""A corruption of a row: the statement that makes it, and the checks that must detect it.

A statement corrupts a healthy market (`%(key)s`) or block (`%(block)s`); where it is about something else, that is
named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection

SEQ = "(as_ms(now()) << 20)"
AHEAD = "now() + interval '1 day'"


class Corruption(NamedTuple):
    """A statement, or a function of the connection, and the checks that detect its corruption."""

    does: str | Callable[[Connection], None]
    caught_by: set[str]
    of: str = "market"


def trade(columns: str, values: str) -> str:
    """Insert a trade that is valid except for these columns."""
    whole = {
        "ts": "coalesce((select max(ts) from trades where market_key = %(key)s::int), now() - interval '80 seconds')",
        "market_key": "%(key)s",
        "outcome": "0",
        "trade_id": "-%(key)s",
        "seq": SEQ,
        "side": "1",
        "price": "500000",
        "size": "10000000",
        "value_usd": "5000000",
    }
    whole |= dict(zip(columns.split(), values.split("|"), strict=True))
    return f"insert into trades ({', '.join(whole)}) values ({', '.join(whole.values())})"


def change(table: str, what: str, where: str = "true") -> str:
    """Change a market's row."""
    return f"update {table} set {what} where market_key = %(key)s and {where}"


def of_block(table: str, what: str, where: str = "true") -> str:
    """Change a row of a block."""
    number = "number" if table == "chain_blocks" else "block_number"
    return f"update {table} set {what} where {number} = %(block)s and {where}"


def delivery(nth: int, what: str) -> str:
    """Change a delivery."""
    return f"update webhook_deliveries set {what} where type = 'test {nth}'"
