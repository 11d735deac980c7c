"""Captures of the market socket, reassembled into the original messages."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from upstream.sandbox.common.book import BUY, Side
from upstream.sandbox.tape import files
from upstream.sandbox.tape.made import assigned_condition, assigned_token, made, tag
from upstream.sandbox.tape.recording import BookSeen, LevelsChanged, Recording, TapeEvent, TapeListing
from upstream.sandbox.tape.snapshots import Kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from upstream.sandbox.tape.files import File

MAX_HASH = 128  # characters
GAME = 4  # words in the slug of a game: league, away, home, day


class Row(NamedTuple):
    """One row of a capture."""

    token: str
    hash: str
    ts_ms: int
    kind: str
    side: Side
    price: int
    size: int

    @property
    def message(self) -> tuple[str, str, int, str]:
        """Return the key of the row's message: consecutive rows with the same key were one message."""
        return self.token, self.hash, self.ts_ms, self.kind


@dataclass
class _Market:
    """Market attributes found in rows."""

    id: str = ""
    names: dict[str, str] = field(default_factory=dict)  # outcomes, by token


def flattened(file: File, rows: Iterable[tuple[int, files.Row]]) -> Recording:
    """Read a capture written as one row per level."""
    markets: dict[str, _Market] = {}
    tape_events: list[TapeEvent] = []
    for _, group in groupby(_read(file, rows, markets), key=lambda row: row.message):
        levels = list(group)
        first = levels[0]
        file.take(first.token, len(levels))
        if first.kind == "book":
            bids = [(row.price, row.size) for row in levels if row.side == BUY]
            asks = [(row.price, row.size) for row in levels if row.side != BUY]
            tape_events.append(BookSeen(first.ts_ms, first.token, first.hash, Kept(bids, asks)))
        else:
            changes = [(row.side, row.price, row.size) for row in levels]
            tape_events.append(LevelsChanged(first.ts_ms, first.token, first.hash, changes))
    return Recording(
        file.name, "socket", tape_events, [_game(file.name, slug, market) for slug, market in markets.items()], file
    )


def _read(file: File, rows: Iterable[tuple[int, files.Row]], markets: dict[str, _Market]) -> Iterator[Row]:
    for number, row in rows:
        try:
            level = Row(
                files.token(row["asset_id"]),
                row["hash"][:MAX_HASH],
                files.moment(row["timestamp"]),
                row["event_type"],
                files.side(row["side"]),
                files.price(row["price"]),
                files.size(row["size"]),
            )
        except ValueError as error:
            file.leave(str(error), number)
            continue
        if level.kind not in {"book", "price_change"} or not row["market_slug"]:
            file.leave("neither book nor price_change" if row["market_slug"] else "names no market", number)
            continue
        market = markets.setdefault(row["market_slug"], _Market())
        given = row.get("market_id", "")
        market.id = market.id or (given if given.isascii() and given.isdecimal() and len(given) < 19 else "")
        market.names[level.token] = row.get("outcome_name") or market.names.get(level.token, "")
        yield level


def old_shape(file: File, rows: Iterable[tuple[int, files.Row]]) -> Recording:
    """Read `price_change` messages of early 2025, complete except for their times."""
    tape_events: list[TapeEvent] = []
    markets: dict[str, list[str]] = {}
    for number, row in rows:
        try:
            at_ms = _moment(row["timestamp"])
            token, condition_id = files.token(row["asset_id"]), files.condition(row["market"])
            changes = [
                (files.side(one["side"]), files.price(one["price"]), files.size(one["size"]))
                for one in json.loads(row["changes"])
            ]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            file.leave(str(error) if str(error).startswith("malformed ") else "malformed changes", number)
            continue
        known = markets.setdefault(condition_id, [])
        if token not in known:
            known.append(token)
        file.take(token)
        tape_events.append(LevelsChanged(at_ms, token, row["hash"][:MAX_HASH], changes))
    listings = [_without_name(file.name, condition_id, tokens) for condition_id, tokens in markets.items()]
    return Recording(file.name, "socket", tape_events, listings, file)


def _moment(text: str) -> int:
    try:
        at = datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f %z")
    except ValueError:
        return files.moment(text)
    return files.moment(round(at.timestamp() * 1000))


def _game(source: str, slug: str, market: _Market) -> TapeListing:
    """Return a listing for a market known only by its slug, mostly a game; a third token is not one of its outcomes."""
    condition_id = assigned_condition(slug, market.id)
    tokens = list(market.names)[:2]
    assigned = ["conditionId"]
    while len(tokens) < 2:
        tokens.append(assigned_token(condition_id, len(tokens)))
        assigned.append("clobTokenIds")
    names = [market.names.get(token) or f"Outcome {place}" for place, token in enumerate(tokens, 1)]
    league, *rest = slug.split("-")
    is_game = len(rest) >= GAME - 1
    question = slug
    if is_game:
        away, home, *day = rest
        question = f"{league.upper()}: {away.upper()} vs. {home.upper()}, {'-'.join(day)}"
    gamma = made(
        source,
        slug=slug,
        question=question,
        outcomes=names,
        tokens=tokens,
        condition_id=condition_id,
        gamma_id=market.id,
        assigned=assigned,
    )
    if not is_game:
        return TapeListing(gamma, source, played=True)
    gamma |= {"sportsMarketType": "moneyline"}
    return TapeListing(gamma, source, [tag("sports", "Sports"), tag(league, league.upper())], played=True)


def _without_name(source: str, condition_id: str, tokens: list[str]) -> TapeListing:
    assigned = ["slug", "question"]
    tokens = tokens[:2]
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
    return TapeListing(gamma, source, played=True)
