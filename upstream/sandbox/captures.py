"""Captures of the market socket, put together again into the messages they were."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from upstream.micro import parse
from upstream.sandbox.book import BUY, SELL, Levels, Side
from upstream.sandbox.made import assigned_condition, assigned_token, made, tag
from upstream.sandbox.recording import BookSeen, Happening, LevelsChanged, Listing, Recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIDES: dict[str, Side] = {"bid": BUY, "BUY": BUY, "buy": BUY, "ask": SELL, "SELL": SELL, "sell": SELL}


class Row(NamedTuple):
    token: str
    hash: str
    ts_ms: int
    kind: str
    side: Side
    price: int
    size: int

    @property
    def message(self) -> tuple[str, str, int, str]:
        """Rows that follow each other and have this in common were one message."""
        return self.token, self.hash, self.ts_ms, self.kind


def flattened(path: Path) -> Recording:
    """Read a capture that its recorder wrote as one row a level: `*_polymarket-market-events.csv.gz`."""
    capture = _Flattened(path)
    happenings: list[Happening] = []
    for _, group in groupby(capture.rows(), key=lambda row: row.message):
        rows = list(group)
        first = rows[0]
        if first.kind == "book":
            bids = [(row.price, row.size) for row in rows if row.side == BUY]
            asks = [(row.price, row.size) for row in rows if row.side == SELL]
            happenings.append(BookSeen(first.ts_ms, first.token, first.hash, _given(bids, asks)))
        else:
            changes = [(row.side, row.price, row.size) for row in rows]
            happenings.append(LevelsChanged(first.ts_ms, first.token, first.hash, changes))
    return Recording(
        path.name, "socket", happenings, [capture.listing()] if capture.slug else [], malformed=capture.malformed
    )


def old_shape(path: Path) -> Recording:
    """Read `price_change` messages of early 2025, kept whole but for their times."""
    happenings: list[Happening] = []
    markets: dict[str, list[str]] = {}
    malformed = 0
    with gzip.open(path, "rt", newline="") as lines:
        for line in csv.DictReader(lines):
            try:
                at_ms = round(datetime.strptime(line["timestamp"], "%Y-%m-%d %H:%M:%S.%f %z").timestamp() * 1000)
                changes = [
                    (SIDES[one["side"]], parse(one["price"]), parse(one["size"])) for one in json.loads(line["changes"])
                ]
                token, condition_id = line["asset_id"], line["market"]
            except (ValueError, KeyError, TypeError):
                malformed += 1
                continue
            known = markets.setdefault(condition_id, [])
            if token not in known:
                known.append(token)
            happenings.append(LevelsChanged(at_ms, token, line["hash"], changes))
    listings = [_without_name(path.name, condition_id, tokens) for condition_id, tokens in markets.items()]
    return Recording(path.name, "socket", happenings, listings, malformed=malformed)


class _Flattened:
    """A capture while it is read: its rows one by one, and what they say about the market meanwhile."""

    def __init__(self, path: Path) -> None:
        self.slug = self.market_id = ""
        self.names: dict[str, str] = {}
        self.malformed = 0
        self._path = path

    def rows(self) -> Iterator[Row]:
        with gzip.open(self._path, "rt", newline="") as lines:
            reader = csv.reader(lines)
            head = next(reader)
            at = {name: place for place, name in enumerate(head)}
            try:
                for cells in reader:
                    row = self._row(cells, at) if len(cells) == len(head) else None
                    if row is None:
                        self.malformed += 1
                    else:
                        yield row
            except EOFError:  # the file was cut off while it was written
                self.malformed += 1

    def _row(self, cells: list[str], at: dict[str, int]) -> Row | None:
        try:
            row = Row(
                cells[at["asset_id"]],
                cells[at["hash"]],
                int(cells[at["timestamp"]]),
                cells[at["event_type"]],
                SIDES[cells[at["side"]]],
                parse(cells[at["price"]]),
                parse(cells[at["size"]]),
            )
        except (ValueError, KeyError):
            return None
        self.slug = self.slug or cells[at["market_slug"]]
        self.market_id = self.market_id or cells[at["market_id"]]
        self.names.setdefault(row.token, "")
        if "outcome_name" in at and cells[at["outcome_name"]]:
            self.names[row.token] = cells[at["outcome_name"]]
        return row

    def listing(self) -> Listing:
        """Describe the market: a baseball game, named by its slug."""
        condition_id = assigned_condition(self.slug, self.market_id)
        tokens = list(self.names)
        assigned = ["conditionId"]
        while len(tokens) < 2:
            tokens.append(assigned_token(condition_id, len(tokens)))
            assigned.append("clobTokenIds")
        names = [self.names.get(token) or f"Outcome {place}" for place, token in enumerate(tokens, 1)]
        league, away, home, *day = self.slug.split("-")
        gamma = made(
            self._path.name,
            slug=self.slug,
            question=f"{league.upper()}: {away.upper()} vs. {home.upper()}, {'-'.join(day)}",
            outcomes=names,
            tokens=tokens,
            condition_id=condition_id,
            gamma_id=self.market_id,
            assigned=assigned,
        )
        gamma |= {"sportsMarketType": "moneyline"}
        return Listing(gamma, self._path.name, [tag("sports", "Sports"), tag(league, league.upper())], played=True)


def _without_name(source: str, condition_id: str, tokens: list[str]) -> Listing:
    assigned = ["slug", "question"]
    while len(tokens) < 2:
        tokens.append(assigned_token(condition_id, len(tokens)))
        assigned.append("clobTokenIds[1]")
    slug = f"recorded-market-{condition_id[2:10]}"
    gamma = made(
        source,
        slug=slug,
        question=f"Recorded market {condition_id[:10]}",
        outcomes=("Yes", "No"),
        tokens=tokens,
        condition_id=condition_id,
        assigned=assigned,
    )
    return Listing(gamma, source, played=True)


def _given(bids: Levels, asks: Levels) -> _Given:
    return _Given(bids, asks)


class _Given:
    """Levels that are at hand already."""

    __slots__ = ("_asks", "_bids")

    def __init__(self, bids: Levels, asks: Levels) -> None:
        self._bids, self._asks = bids, asks

    def __call__(self) -> tuple[Levels, Levels]:
        return self._bids, self._asks
