"""Recorded books: whole ones, taken again and again, or once."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from upstream.micro import ONE, parse
from upstream.sandbox.made import assigned_token, made, tag
from upstream.sandbox.recording import BookSeen, Happening, Listing, Recording, Won

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from upstream.sandbox.book import Levels

CRYPTO = [tag("crypto", "Crypto"), tag("up-or-down", "Up or Down")]
DEPTH = 5


def quarter_hours(books: Path, markets: Path) -> Recording:
    """Read the books of BTC 15-minute markets, one a second and side, and how each of the markets ended."""
    listings, tokens = [], {}
    happenings: list[Happening] = []
    for row in pq.read_table(markets).to_pylist():
        condition_id = row["market_id"]
        pair = [assigned_token(condition_id, outcome) for outcome in (0, 1)]
        tokens[condition_id, "UP"], tokens[condition_id, "DOWN"] = pair
        gamma = made(
            books.name,
            slug=row["slug"],
            question=row["question"],
            outcomes=(row["outcome_up"], row["outcome_down"]),
            tokens=pair,
            condition_id=condition_id,
            assigned=["clobTokenIds"],
        )
        moments = {"eventStartTime": row["start_ts"], "endDate": row["end_ts"]}
        listings.append(Listing(gamma, books.name, CRYPTO, played=True, moments_ms=moments))
        happenings.append(Won(row["end_ts"], pair[0 if row["payout_up"] == 1 else 1]))
    table = pq.read_table(books).combine_chunks()
    columns = {name: table.column(name).combine_chunks() for name in ("bid_px", "bid_sz", "ask_px", "ask_sz")}
    plain = table.select(["market_id", "ts", "side"]).to_pylist()
    skipped = 0
    for at, row in enumerate(plain):
        token = tokens.get((row["market_id"], row["side"]))
        if token is None:
            skipped += 1
        else:
            happenings.append(BookSeen(row["ts"], token, "", _arrays(columns, at)))
    happenings.sort(key=lambda one: one.at_ms)
    return Recording(books.name, "books", happenings, listings, malformed=skipped)


def five_levels(path: Path) -> Recording:
    """Read the five best levels of up/down markets, `selcuk_book_snapshots.csv.gz`."""
    happenings: list[Happening] = []
    malformed = 0
    with gzip.open(path, "rt", newline="") as lines:
        for line in csv.DictReader(lines):
            try:
                bids = [_level(line, "bid", depth) for depth in range(DEPTH, 0, -1) if line[f"bid_{depth}_price"]]
                asks = [_level(line, "ask", depth) for depth in range(DEPTH, 0, -1) if line[f"ask_{depth}_price"]]
                happenings.append(BookSeen(int(line["timestamp_ms"]), line["token_id"], "", _Kept(bids, asks)))
            except (ValueError, KeyError, TypeError):
                malformed += 1
    return Recording(path.name, "books", happenings, [], group="up-down-2026-03-10", malformed=malformed)


@dataclass
class StillBook:
    """A book recorded once: it rests where it was."""

    token: str
    bids: Levels
    asks: Levels
    last_price: int | None


def still_books(path: Path) -> list[StillBook]:
    """Read an answer of `POST /books`."""
    with gzip.open(path, "rt") as lines:
        return [
            StillBook(
                book["asset_id"], _levels(book["bids"]), _levels(book["asks"]), _price(book.get("last_trade_price"))
            )
            for book in json.load(lines)
        ]


def _level(line: dict[str, str], side: str, depth: int) -> tuple[int, int]:
    return parse(line[f"{side}_{depth}_price"]), parse(line[f"{side}_{depth}_size"])


def _levels(side: list[dict[str, str]]) -> Levels:
    return [(parse(level["price"]), parse(level["size"])) for level in side]


def _price(text: str | None) -> int | None:
    return parse(text) if text else None


@dataclass(slots=True)
class _Kept:
    bids: Levels
    asks: Levels

    def __call__(self) -> tuple[Levels, Levels]:
        return self.bids, self.asks


def _arrays(columns: dict[str, Any], at: int) -> Callable[[], tuple[Levels, Levels]]:
    """Return a reader of one row, so that a million levels need not be numbers before they are due."""

    def read() -> tuple[Levels, Levels]:
        sides = []
        for side in ("bid", "ask"):
            prices, sizes = columns[f"{side}_px"][at].as_py() or [], columns[f"{side}_sz"][at].as_py() or []
            best_first = [(round(price * ONE), round(size * ONE)) for price, size in zip(prices, sizes, strict=True)]
            sides.append(best_first[::-1])
        return sides[0], sides[1]

    return read
