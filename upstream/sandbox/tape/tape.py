"""Tape: a folder of recordings, the markets it lists, and exactly what it plays.

`python -m upstream.sandbox.tape.tape DIR` prints it as lines of JSON.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from upstream.sandbox.exchange.catalogue import Gamma, token_ids
from upstream.sandbox.tape import captures, kinds, prints, recorded_markets, snapshots
from upstream.sandbox.tape.files import UnreadableError
from upstream.sandbox.tape.folder import Folder, UnplayableError
from upstream.sandbox.tape.made import complete
from upstream.sandbox.tape.recording import BookSeen, LevelsChanged, Printed, Recording, TapeEvent, TapeListing
from upstream.transport.micro import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from upstream.sandbox.tape.files import File, Row
    from upstream.sandbox.tape.kinds import Content, Kind
    from upstream.sandbox.tape.snapshots import QuarterHourMarket, StillBook

Result = TypeVar("Result")

STAGGER_MS = 40
MAX_NAMES = 3  # in a line of text


class Played(NamedTuple):
    """An event of a tape at its play time: `due_ms` never decreases within a recording, `ts_ms` may, as recorded."""

    due_ms: int
    order: int
    ts_ms: int
    recording: Recording
    tape_event: TapeEvent

    @property
    def kind(self) -> str:
        """The kind of the event."""
        if isinstance(self.tape_event, LevelsChanged):
            return "price_change"
        if isinstance(self.tape_event, BookSeen):
            return "book"
        return "last_trade_price" if isinstance(self.tape_event, Printed) else "market_resolved"


@dataclass
class Timeline:
    """Maps a recording's times: its first moment to the start or, at maximum speed, its last."""

    start_ms: int
    speed: float
    first_ms: int
    last_ms: int
    stagger_ms: int

    def __call__(self, at_ms: int) -> int:
        if self.speed == 0:
            return self.start_ms - (self.last_ms - at_ms)
        return self.start_ms + self.stagger_ms + int((at_ms - self.first_ms) / self.speed)


@dataclass
class Tape:
    """Contents of a recordings folder."""

    listings: list[TapeListing]
    events: list[Gamma]
    recordings: list[Recording]
    still: list[StillBook]
    files: list[File]

    def timelines(self, start_ms: int, speed: float) -> list[Timeline]:
        """Return the timeline of each recording."""
        spans: dict[str, tuple[int, int]] = {}
        for recording in self.recordings:
            name = recording.group or recording.name
            first, last = spans.get(name, (recording.first_ms, recording.last_ms))
            spans[name] = min(first, recording.first_ms), max(last, recording.last_ms)
        places = {name: place for place, name in enumerate(spans)}
        return [
            Timeline(start_ms, speed, *spans[name], stagger_ms=places[name] * STAGGER_MS)
            for name in (recording.group or recording.name for recording in self.recordings)
        ]

    def play(self, start_ms: int, speed: float = 1.0) -> Iterator[Played]:
        """Yield all events in play order."""
        lanes = zip(self.recordings, self.timelines(start_ms, speed), range(len(self.recordings)), strict=True)
        return heapq.merge(
            *(_lane(recording, timeline, place) for recording, timeline, place in lanes), key=lambda one: one[:2]
        )

    def conditions(self) -> dict[str, tuple[str, int]]:
        """Return condition id and outcome of every token."""
        return {
            token: (listing.gamma.get("conditionId") or "", outcome)
            for listing in self.listings
            for outcome, token in enumerate(token_ids(listing.gamma))
        }

    def forget_unknown(self) -> None:
        """Drop rows about tokens that no market has, and count what was used."""
        known = {token for listing in self.listings for token in token_ids(listing.gamma)}
        for recording in self.recordings:
            recording.tape_events = [one for one in recording.tape_events if one.token in known]
        self.recordings = [recording for recording in self.recordings if recording.tape_events]
        self.still = [book for book in self.still if book.token in known]
        for file in self.files:
            file.why = file.why or ("" if file.rows else "no rows")
            for token, count in file.of_token.items():
                if token in known:
                    file.used += count
                elif count:
                    file.leave("of a token that no file describes", count=count)

    def summary(self) -> dict[str, Any]:
        """Return the tape's totals."""
        kinds = Counter(type(one).__name__ for recording in self.recordings for one in recording.tape_events)
        return {
            "markets": len(self.listings),
            "markets_described_by_gamma": sum("sandboxMadeFrom" not in listing.gamma for listing in self.listings),
            "markets_played": sum(listing.played for listing in self.listings),
            "recordings": {recording.name: len(recording.tape_events) for recording in self.recordings},
            "socket_captures": sum(recording.kind == "socket" for recording in self.recordings),
            "price_changes": kinds["LevelsChanged"],
            "books": kinds["BookSeen"],
            "trades": kinds["Printed"],
            "resolutions": kinds["Won"],
        }

    def account(self) -> dict[str, Any]:
        """Return per file what was used of it, or why nothing was."""
        return {
            "files": [file.account() for file in self.files if file.rows],
            "unread": {file.name: file.why for file in self.files if not file.rows},
        }

    def lines(self) -> Iterator[str]:
        """Yield the account as lines of text."""
        read = sum(file.used > 0 for file in self.files)
        used, rows = sum(file.used for file in self.files), sum(file.rows for file in self.files)
        yield f"{read} of {len(self.files)} files used, {used:,} of their {rows:,} rows"
        alike: dict[str, list[str]] = {}
        for file in self.files:
            if file.rows:
                yield file.line()
            else:
                alike.setdefault(file.why, []).append(file.name)
        for why, names in alike.items():
            more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
            yield f"not read: {', '.join(names[:MAX_NAMES])}{more}: {why}"


def read_tape(folder: Path | str, progress: Callable[[str], None] | None = None) -> Tape:
    """Read a folder of recordings; UnplayableError if there is nothing in it to play or list."""
    return _Reader(Path(folder), progress or (lambda _line: None)).read()


class _Reader:
    """Reader of a folder, kind by kind, catalogues first."""

    def __init__(self, folder: Path, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._folder = folder
        self._in_folder = Folder(folder, progress)
        self._files = self._in_folder.files
        self._contents: list[Content] = []
        self._listings: list[TapeListing] = []
        self._events: list[Gamma] = []
        self._names: set[tuple[str, str]] = set()
        self._of_condition: dict[str, TapeListing] = {}

    def read(self) -> Tape:
        began = time.monotonic()
        self._recognise()
        self._catalogues()
        recordings = list(self._recordings())
        for recording in recordings:
            self._list(recording.listings)
        self._each(
            kinds.SIMPLIFIED,
            lambda one: recorded_markets.simplified_markets(one.file, one.rows(), self._of_condition),
        )
        still = self._each(kinds.STILL_BOOKS, lambda one: snapshots.still_books(one.file, one.rows()))
        prints.forget_repeated(recordings)
        tape = Tape(self._listings, self._events, recordings, [book for books in still for book in books], self._files)
        tape.forget_unknown()
        _mark_played(tape)
        for line in tape.lines():
            self._progress(line)
        if not tape.listings:
            raise UnplayableError("\n".join([f"no recordings in {self._folder}", *tape.lines()]))
        took = time.monotonic() - began
        self._progress(f"read {len(tape.listings)} markets and {len(tape.recordings)} recordings in {took:.1f} s")
        return tape

    # --- Files ---

    def _recognise(self) -> None:
        """Read all files, and keep those that are usable."""
        for file, data in self._in_folder.unpacked():
            try:
                self._contents.append(kinds.content(file, data))
            except UnreadableError as error:
                file.why = "; ".join(filter(None, [str(error), file.cut]))

    def _each(self, kind: Kind, read: Callable[[Content], Result]) -> list[Result]:
        """Read all files of a kind; one that turns out unreadable records why."""
        found = []
        for content in self._contents:
            if content.kind is kind:
                try:
                    found.append(read(content))
                except UnreadableError as error:
                    file = content.file
                    file.why = str(error)
                    file.left_out[file.why] += file.rows - sum(file.left_out.values())
        return found

    # --- Catalogues ---

    def _catalogues(self) -> None:
        gamma: list[TapeListing] = []
        for kind in (kinds.GAMMA_EVENTS, kinds.GAMMA_MARKETS, kinds.GAMMA_LINES):
            for markets, events in self._each(kind, lambda one: recorded_markets.gamma_markets(one.file, one.rows())):
                gamma += markets
                self._events += events
        self._list(recorded_markets.newest(gamma))
        for kind, read in (
            (kinds.CLOB_MARKETS, recorded_markets.clob_markets),
            (kinds.UP_DOWN_MARKETS, recorded_markets.up_down_markets),
            (kinds.FIVE_MINUTE_MARKETS, recorded_markets.five_minute_markets),
        ):
            for listings in self._each(kind, partial(_listings, read)):
                self._list(listings)
        for listings, events in self._each(
            kinds.CAPTURE_MARKETS, lambda one: recorded_markets.capture_markets(one.file, one.rows())
        ):
            self._events += events
            self._list(listings)

    def _list(self, listings: Iterable[TapeListing]) -> None:
        """Add the markets not known yet, by condition, id or token."""
        for listing in listings:
            own = _names(listing)
            if not self._names.isdisjoint(own):
                known = self._of_condition.get(listing.gamma.get("conditionId") or "")
                if known is not None:
                    self._names |= {("token", token) for token in complete(known.gamma, listing.gamma)}
                recorded_markets.leave(listing, recorded_markets.KNOWN)
                continue
            self._names |= own
            self._listings.append(listing)
            if listing.file is not None:
                listing.file.used += 1
            if condition_id := listing.gamma.get("conditionId"):
                self._of_condition.setdefault(condition_id, listing)

    # --- Recordings ---

    def _recordings(self) -> Iterator[Recording]:
        yield from self._each(kinds.SOCKET, lambda one: captures.flattened(one.file, one.rows()))
        yield from self._each(kinds.OLD_SHAPE, lambda one: captures.old_shape(one.file, one.rows()))
        windows: dict[str, QuarterHourMarket] = {}
        known = dict(self._of_condition)
        for of in self._each(
            kinds.QUARTER_MARKETS, lambda one: snapshots.quarter_hour_markets(one.file, one.rows(), known)
        ):
            windows = of | windows
        self._list(listing for condition_id, listing in known.items() if condition_id not in self._of_condition)
        yield from self._each(kinds.QUARTER_BOOKS, lambda one: snapshots.quarter_hours(one.file, one.table(), windows))
        yield from self._each(kinds.FIVE_LEVELS, lambda one: snapshots.five_levels(one.file, one.rows()))
        yield from self._each(kinds.UP_DOWN_TRADES, lambda one: prints.up_down(one.file, one.rows()))
        places = {token: place for one in self._listings for place, token in enumerate(token_ids(one.gamma))}
        yield from self._each(kinds.DATA_API, lambda one: prints.data_api(one.file, one.rows(), places))
        for found in self._each(kinds.CANDLE, lambda one: prints.candles(one.file, one.rows())):
            yield from found


def _listings(
    read: Callable[[File, Iterator[tuple[int, Row]]], Iterable[TapeListing]], one: Content
) -> list[TapeListing]:
    return list(read(one.file, one.rows()))


def _names(listing: TapeListing) -> set[tuple[str, str]]:
    gamma = listing.gamma
    names = {("id", str(gamma["id"])), ("condition", gamma.get("conditionId") or str(gamma["id"]))}
    return names | {("token", token) for token in token_ids(gamma)}


def _mark_played(tape: Tape) -> None:
    """Open the markets that will trade, whatever their later state, and set the recordings' own times."""
    of_token = {token: listing for listing in tape.listings for token in token_ids(listing.gamma)}
    for recording in tape.recordings:
        for token in recording.tokens():
            listing = of_token.get(token)
            if listing is None:
                continue
            listing.played = True
            listing.gamma = {
                **listing.gamma,
                "active": True,
                "closed": False,
                "archived": False,
                "acceptingOrders": True,
                "enableOrderBook": True,
            }
            for later in ("closedTime", "umaResolutionStatus"):
                listing.gamma.pop(later, None)


def _lane(recording: Recording, timeline: Timeline, place: int) -> Iterator[Played]:
    due = 0
    for tape_event in recording.tape_events:
        ts_ms = timeline(tape_event.at_ms)
        due = max(due, ts_ms)
        yield Played(due, place, ts_ms, recording, tape_event)


def lines(tape: Tape, start_ms: int, speed: float, what: str) -> Iterator[dict[str, Any]]:
    """Yield messages, trades or markets of a tape, as they are sent and listed."""
    if what == "markets":
        yield from (listing.gamma for listing in tape.listings)
        return
    conditions = tape.conditions()
    for played in tape.play(start_ms, speed):
        tape_event = played.tape_event
        condition_id, outcome = conditions.get(tape_event.token, ("", 0))
        if isinstance(tape_event, Printed) and what == "trades":
            yield {
                "ts_ms": played.ts_ms,
                "condition_id": condition_id,
                "outcome": outcome,
                "token": tape_event.token,
                "side": tape_event.side,
                "price": text(tape_event.price),
                "size": text(tape_event.size),
                "tx": tape_event.tx,
                "wallet": tape_event.wallet,
                "recording": played.recording.name,
            }
        elif what == "messages" and isinstance(tape_event, LevelsChanged | BookSeen | Printed):
            yield tape_event.message(condition_id, played.ts_ms)


def main() -> None:
    """Print a tape."""
    parser = argparse.ArgumentParser(prog="python -m upstream.sandbox.tape.tape", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--what", choices=("summary", "messages", "trades", "markets"), default="summary")
    parser.add_argument(
        "--start-ms", type=int, default=0, help="when the tape starts, as in /sandbox/status (default: 0)"
    )
    parser.add_argument("--speed", type=float, default=1.0)
    given = parser.parse_args()
    try:
        tape = read_tape(given.folder)
    except UnplayableError as error:
        parser.exit(1, f"{error}\n")
    if given.what == "summary":
        print(json.dumps(tape.summary() | tape.account(), indent=2))
    else:
        for line in lines(tape, given.start_ms, given.speed, given.what):
            sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
