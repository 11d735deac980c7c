"""Candles of an outcome whose trades are listed as the other's: at one dollar less their prices."""

from __future__ import annotations

from typing import Any

import msgspec

OTHERS = {"open": "open", "high": "low", "low": "high", "close": "close"}


def candles(text: str) -> str:
    """Return the candles of the other outcome, as a JSON array of records.

    As many shares were traded, and both outcomes' are worth a dollar together: `volume` less `volume_usd`.
    """
    rows: list[dict[str, Any]] = msgspec.json.decode(text)
    return msgspec.json.encode(
        [
            row
            | {name: _less(row[other]) for name, other in OTHERS.items()}
            | {"volume_usd": round(row["volume"] - row["volume_usd"], 6)}
            for row in rows
        ]
    ).decode()


def bars(text: str) -> str:
    """Return the bars of the other outcome, in the columns of charting libraries."""
    columns: dict[str, Any] = msgspec.json.decode(text)
    prices = {name[0]: [_less(price) for price in columns[other[0]]] for name, other in OTHERS.items()}
    return msgspec.json.encode(columns | prices).decode()


def _less(price: float) -> float:
    return round(1 - price, 6)
