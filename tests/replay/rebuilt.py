"""Reference books and candles, computed from the recordings with pandas and dictionaries instead of the product."""

from __future__ import annotations

import functools
import gzip
import io
import json
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Side = dict[int, int]
Book = tuple[Side, Side]


@functools.cache
def micro(text: str) -> int:
    return int((Decimal(text) * 1_000_000).to_integral_value())


def unpacked(path: Path) -> str:
    """Return the text of a gzip file up to where it breaks off: some were truncated while being written."""
    parts = []
    with gzip.open(path, "rb") as file:
        try:
            while part := file.read(65536):
                parts.append(part)
        except EOFError:
            pass
    return b"".join(parts).decode()


class CapturedMessage(NamedTuple):
    """One message of a capture about a token: a whole book, or changed levels."""

    token: str
    whole: bool
    levels: list[tuple[str, int, int]]  # bid or ask, price, size


def messages(folder: Path) -> Iterator[CapturedMessage]:
    """Yield every message of every socket capture in the folder; those of one token in arrival order."""
    for path in sorted(folder.glob("ws_market/*_polymarket-market-events.csv.gz")):
        yield from _flattened(path)
    for path in sorted(folder.glob("ws_market/old_shape_price_change_*.csv.gz")):
        yield from _old_shape(path)


def apply(book: Book, message: CapturedMessage) -> None:
    """Apply a message to a book."""
    if message.whole:
        for side in book:
            side.clear()
    for side, price, size in message.levels:
        book[side == "ask"][price] = size


def last_books(folder: Path) -> dict[str, Book]:
    """Return each token's book after the last message of every socket capture in the folder."""
    books: dict[str, Book] = {}
    for message in messages(folder):
        apply(books.setdefault(message.token, ({}, {})), message)
    return books


def _flattened(path: Path) -> Iterator[CapturedMessage]:
    """Yield messages: a row is a level; consecutive rows with the same token, hash, time and kind are a message."""
    rows = pd.read_csv(io.StringIO(unpacked(path)), dtype=str, on_bad_lines="skip")
    rows = rows.dropna(subset=["asset_id", "event_type", "price", "side", "size", "hash", "timestamp"])
    described = rows[["asset_id", "hash", "timestamp", "event_type"]]
    begins = described.ne(described.shift()).any(axis=1)
    message: CapturedMessage | None = None
    for row, first in zip(rows.itertuples(index=False), begins, strict=True):
        if first:
            if message:
                yield message
            message = CapturedMessage(row.asset_id, row.event_type == "book", [])
        side = "bid" if row.side.lower() in ("bid", "buy") else "ask"
        message.levels.append((side, micro(row.price), micro(row.size)))
    if message:
        yield message


def _old_shape(path: Path) -> Iterator[CapturedMessage]:
    for row in pd.read_csv(path, dtype=str).itertuples(index=False):
        levels = [
            ("bid" if change["side"] == "BUY" else "ask", micro(change["price"]), micro(change["size"]))
            for change in json.loads(row.changes)
        ]
        yield CapturedMessage(row.asset_id, False, levels)


def levels(side: Side, *, best_is_high: bool) -> list[tuple[int, int]]:
    """Return a side as it is stored: best first, without removed levels."""
    return sorted(((price, size) for price, size in side.items() if size), reverse=best_is_high)


def crossed(book: Book) -> bool:
    """Return whether the book is crossed, as after a capture that began in the middle."""
    bids, asks = (levels(side, best_is_high=high) for side, high in zip(book, (True, False), strict=True))
    return bool(bids and asks) and bids[0][0] >= asks[0][0]


def candles(trades: pd.DataFrame, unit: str) -> pd.DataFrame:
    """Compute candles: a plain GROUP BY over trades with columns token, ts_ms, n, price, size (micro-units)."""
    ordered = trades.sort_values(["token", "ts_ms", "n"])
    ordered["bucket"] = pd.to_datetime(ordered["ts_ms"], unit="ms", utc=True).dt.floor(unit)
    return (
        ordered.groupby(["token", "bucket"])
        .agg(
            open=("price", "first"),
            high=("price", "max"),
            low=("price", "min"),
            close=("price", "last"),
            volume=("size", "sum"),
            trades=("price", "size"),
        )
        .reset_index()
    )
