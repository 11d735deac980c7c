"""Recorded books: series of snapshots, or single ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from upstream.sandbox.exchange.catalogue import token_ids, words
from upstream.sandbox.tape import files
from upstream.sandbox.tape.made import CRYPTO, assigned_token, made, up_down_group
from upstream.sandbox.tape.recording import BookSeen, Recording, TapeEvent, TapeListing, Won
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from upstream.sandbox.common.book import Levels
    from upstream.sandbox.tape.files import File, Row

DEPTH = 5
LEVELS = ("bid_px", "bid_sz", "ask_px", "ask_sz")
SHARES = files.MAX_SIZE / ONE


@dataclass
class QuarterHourMarket:
    """A 15-minute market: its tokens by side, and its result."""

    tokens: dict[str, str]
    won: Won | None


def quarter_hour_markets(
    file: File, rows: Iterable[tuple[int, Row]], known: dict[str, TapeListing]
) -> dict[str, QuarterHourMarket]:
    """Read 15-minute markets; those missing in `known` are added to it, with assigned tokens."""
    found: dict[str, QuarterHourMarket] = {}
    for number, row in rows:
        try:
            condition_id = files.condition(row["market_id"])
            starts, ends = files.moment(row["start_ts"]), files.moment(row["end_ts"])
            outcomes = [row["outcome_up"], row["outcome_down"]]
            if not all(isinstance(text, str) for text in (row["slug"], row["question"], *outcomes)):
                raise ValueError("malformed name")  # noqa: TRY301 - as all that is wrong with a row
        except ValueError as error:
            file.leave(str(error), number)
            continue
        if condition_id in found:
            file.leave("names a market again", number)
            continue
        listing = known.get(condition_id)
        if listing is None:
            pair = [assigned_token(condition_id, outcome) for outcome in (0, 1)]
            gamma = made(
                file.name,
                slug=row["slug"],
                question=row["question"],
                outcomes=outcomes,
                tokens=pair,
                condition_id=condition_id,
                assigned=["clobTokenIds"],
            )
            moments = {"eventStartTime": starts, "endDate": ends}
            listing = known[condition_id] = TapeListing(gamma, file.name, CRYPTO, moments_ms=moments)
        tokens, names = token_ids(listing.gamma), words(listing.gamma.get("outcomes"))
        if len(tokens) != 2 or (names != outcomes and names[::-1] != outcomes):
            file.leave("described otherwise by a catalogue", number)
            continue
        if names != outcomes:
            tokens.reverse()
        payout = row["payout_up"]
        file.used += 1
        found[condition_id] = QuarterHourMarket(
            {"UP": tokens[0], "DOWN": tokens[1]},
            Won(ends, tokens[0 if payout == 1 else 1]) if payout in (0, 1) else None,
        )
    return found


def quarter_hours(file: File, table: pa.Table, of: dict[str, QuarterHourMarket]) -> Recording:
    """Read the books of BTC 15-minute markets, one per second and side, and each market's result."""
    tape_events: list[TapeEvent] = []
    columns = {name: _numbers(table, name) for name in LEVELS}
    sound = _sound(columns)
    seen: dict[str, QuarterHourMarket] = {}
    for at, row in enumerate(table.select(["market_id", "ts", "side"]).to_pylist()):
        window = of.get(row["market_id"])
        token = None if window is None else window.tokens.get(row["side"])
        if window is None or token is None:
            file.leave("of a market that no file describes" if window is None else "malformed side", at + 1)
            continue
        read = _arrays(columns, at)
        try:
            at_ms = files.moment(row["ts"])
            if not sound:
                _check(columns, at)
        except ValueError as error:
            file.leave(str(error), at + 1)
            continue
        seen[row["market_id"]] = window
        file.take(token)
        tape_events.append(BookSeen(at_ms, token, "", read))
    tape_events += [window.won for window in seen.values() if window.won is not None]
    tape_events.sort(key=lambda one: one.at_ms)
    return Recording(file.name, "books", tape_events, [], file)


def five_levels(file: File, rows: Iterable[tuple[int, Row]]) -> Recording:
    """Read the five best levels of up/down markets."""
    tape_events: list[TapeEvent] = []
    for number, row in rows:
        try:
            token = files.token(row["token_id"])
            at_ms = files.moment(row["timestamp_ms"])
            bids, asks = _side(row, "bid"), _side(row, "ask")
        except ValueError as error:
            file.leave(str(error), number)
            continue
        file.take(token)
        tape_events.append(BookSeen(at_ms, token, "", Kept(bids, asks)))
    group = up_down_group(tape_events[0].at_ms) if tape_events else ""
    return Recording(file.name, "books", tape_events, [], file, group=group)


@dataclass
class StillBook:
    """A book recorded once: it rests unchanged."""

    token: str
    bids: Levels
    asks: Levels
    last_price: int | None
    file: File


def still_books(file: File, rows: Iterable[tuple[int, Row]]) -> list[StillBook]:
    """Read a response of `POST /books`."""
    found = []
    for number, book in rows:
        try:
            token = files.token(book.get("asset_id"))
            last = book.get("last_trade_price")
            still = StillBook(
                token, _levels(book.get("bids")), _levels(book.get("asks")), files.price(last) if last else None, file
            )
        except ValueError as error:
            file.leave(str(error), number)
            continue
        file.take(token)
        found.append(still)
    return found


def _side(row: Row, side: str) -> Levels:
    """Return the levels of a side that the file has, worst first."""
    return [
        (files.price(price), files.size(row.get(f"{side}_{depth}_size")))
        for depth in range(DEPTH, 0, -1)
        if (price := row.get(f"{side}_{depth}_price"))
    ]


def _levels(side: Any) -> Levels:
    if not isinstance(side, list) or not all(isinstance(level, dict) for level in side):
        raise ValueError("malformed levels")
    return [(files.price(level.get("price")), files.size(level.get("size"))) for level in side]


@dataclass(slots=True)
class Kept:
    """Levels already in memory."""

    bids: Levels
    asks: Levels

    def __call__(self) -> tuple[Levels, Levels]:
        return self.bids, self.asks


def _numbers(table: pa.Table, name: str) -> Any:
    """Return a column of lists of numbers."""
    kind = table.schema.field(name).type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not (
        pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)
    ):
        raise files.UnreadableError(f"column {name} has no lists of numbers")
    column = table.column(name).combine_chunks()
    return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)


def _sound(columns: dict[str, Any]) -> bool:
    """Return whether every level of a file has a valid price and size."""
    for side in ("bid", "ask"):
        prices, sizes = columns[f"{side}_px"], columns[f"{side}_sz"]
        for values, most in ((prices.flatten(), 1.0), (sizes.flatten(), SHARES)):
            if (
                values.null_count
                or not pc.all(pc.and_(pc.greater_equal(values, 0), pc.less_equal(values, most))).as_py()
            ):
                return len(values) == 0 and len(prices) == 0
        lengths = [pc.fill_null(pc.list_value_length(column), 0) for column in (prices, sizes)]
        if not lengths[0].equals(lengths[1]):
            return False
    return True


def _check(columns: dict[str, Any], at: int) -> None:
    for side in ("bid", "ask"):
        prices, sizes = (columns[f"{side}_{part}"][at].as_py() or [] for part in ("px", "sz"))
        if len(prices) != len(sizes):
            raise ValueError("malformed levels")
        for values, most in ((prices, 1.0), (sizes, SHARES)):
            if not all(value is not None and math.isfinite(value) and 0 <= value <= most for value in values):
                raise ValueError("malformed levels")


def _arrays(columns: dict[str, Any], at: int) -> Callable[[], tuple[Levels, Levels]]:
    """Return a reader of one row, so that a million levels are not converted before they are due."""

    def read() -> tuple[Levels, Levels]:
        sides = []
        for side in ("bid", "ask"):
            prices, sizes = columns[f"{side}_px"][at].as_py() or [], columns[f"{side}_sz"][at].as_py() or []
            best_first = [(round(price * ONE), round(size * ONE)) for price, size in zip(prices, sizes, strict=True)]
            sides.append(best_first[::-1])
        return sides[0], sides[1]

    return read
