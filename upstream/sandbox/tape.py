"""A folder of recordings as a tape: what it lists, and exactly what it plays.

`python -m upstream.sandbox.tape DIR` prints it as lines of JSON.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from upstream.micro import text
from upstream.sandbox import captures, prints, recorded_markets, snapshots
from upstream.sandbox.catalogue import Gamma, token_ids
from upstream.sandbox.recording import BookSeen, Happening, LevelsChanged, Listing, Printed, Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from upstream.sandbox.snapshots import StillBook

STAGGER_MS = 40
LEFT_OUT = {
    "books/bbo_quotes_*.parquet": "names no tokens, and none of the markets that the catalogues describe",
    "books/btc_hf_*_price_updates.parquet": "every row says 0.01 to 0.99, the worst levels instead of the best",
    "ws_market/nba_ws_*.parquet": "its markets are listed; no row has levels, and its prints have no size",
    "trades/large_trades_sigil.csv.gz": "names neither tokens nor conditions",
    "trades/whale_trades_v2_era.csv": "names no tokens, and hardly any conditions",
    "catalog/*": "in words of their publishers, without tokens or conditions",
}


class Played(NamedTuple):
    """Something of a tape, when it is played: `due_ms` never falls within a recording, `ts_ms` may, as it did."""

    due_ms: int
    order: int
    ts_ms: int
    recording: Recording
    happening: Happening

    @property
    def kind(self) -> str:
        if isinstance(self.happening, LevelsChanged):
            return "price_change"
        if isinstance(self.happening, BookSeen):
            return "book"
        return "last_trade_price" if isinstance(self.happening, Printed) else "market_resolved"


@dataclass
class Timeline:
    """Where the times of a recording come to lie: its first moment at the start, or, as fast as possible, its last."""

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
    """What a folder of recordings holds."""

    listings: list[Listing]
    events: list[Gamma]
    recordings: list[Recording]
    still: list[StillBook]
    left_out: dict[str, str] = field(default_factory=dict)
    counted: Counter[str] = field(default_factory=Counter)

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
        """Go through all of it in the order it is played."""
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

    def summary(self) -> dict[str, Any]:
        kinds = Counter(type(one).__name__ for recording in self.recordings for one in recording.happenings)
        return {
            "markets": len(self.listings),
            "markets_described_by_gamma": sum("sandboxMadeFrom" not in listing.gamma for listing in self.listings),
            "markets_played": sum(listing.played for listing in self.listings),
            "recordings": {recording.name: len(recording.happenings) for recording in self.recordings},
            "socket_captures": sum(recording.kind == "socket" for recording in self.recordings),
            "price_changes": kinds["LevelsChanged"],
            "books": kinds["BookSeen"],
            "trades": kinds["Printed"],
            "resolutions": kinds["Won"],
            "malformed_lines": {
                recording.name: recording.malformed for recording in self.recordings if recording.malformed
            },
            "counted": dict(self.counted)
            | {f"{one.name}: {what}": many for one in self.recordings for what, many in one.counted.items()},
            "left_out": self.left_out,
        }


def read_tape(folder: Path | str, progress: Callable[[str], None] | None = None) -> Tape:
    """Read a folder of recordings laid out as `shared/recorded` is; files it does not have are no fault."""
    return _Reader(Path(folder), progress or (lambda _line: None)).read()


class _Reader:
    def __init__(self, folder: Path, progress: Callable[[str], None]) -> None:
        if not folder.is_dir():
            raise FileNotFoundError(f"no folder of recordings: {folder}")
        self._folder, self._progress = folder, progress
        self._counted: Counter[str] = Counter()

    def read(self) -> Tape:
        began = time.monotonic()
        described, events = self._described()
        recordings = [recording for recording in self._recordings() if recording.happenings]
        shown, capture_events = self._each("ws_market/nba_ws_*.parquet", recorded_markets.capture_markets)
        others = [listing for recording in recordings for listing in recording.listings] + shown
        for path in self._paths("books/selcuk_active_markets.csv.gz"):
            others += recorded_markets.up_down_markets(path)
        for path in self._paths("books/btc_hf_*_markets.csv"):
            others += recorded_markets.five_minute_markets(path)
        listings = _unlike(described, others)
        tape = Tape(listings, [*events, *capture_events], recordings, [], counted=self._counted)
        _mark_played(tape)
        tape.still = [book for path in self._paths("clob/books_*.json.gz") for book in snapshots.still_books(path)]
        tape.left_out = {pattern: why for pattern, why in LEFT_OUT.items() if any(self._folder.glob(pattern))}
        if not listings:
            raise FileNotFoundError(f"no recordings in {self._folder}")
        self._progress(
            f"read {len(listings)} markets and {len(recordings)} recordings in {time.monotonic() - began:.1f} s"
        )
        return tape

    def _described(self) -> tuple[list[Listing], list[Gamma]]:
        """Read the catalogues, Gamma's before the order book API's."""
        gamma, events = self._each("gamma/*.json*", recorded_markets.gamma_markets, skip=("gamma_sports", "gamma_tags"))
        found = list(recorded_markets.newest(gamma))
        for path in self._paths("clob/*markets*.json.gz"):
            more, unusable = recorded_markets.clob_markets(path)
            self._counted[f"{path.name}: markets without condition or tokens"] += unusable
            found = _unlike(found, more)
        return found, events

    def _recordings(self) -> Iterator[Recording]:
        for path in self._paths("ws_market/*_polymarket-market-events.csv.gz"):
            yield captures.flattened(path)
        for path in self._paths("ws_market/old_shape_price_change_*.csv.gz"):
            yield captures.old_shape(path)
        for path in self._paths("books/*_l2_books.parquet"):
            yield snapshots.quarter_hours(path, path.with_name(path.name.replace("_l2_books", "_markets")))
        for path in self._paths("books/selcuk_book_snapshots.csv.gz"):
            yield snapshots.five_levels(path)
        for path in self._paths("trades/live_trades_updown_*.csv.gz"):
            yield prints.up_down(path)
        for path in self._paths("trades/data_api_trades_*.csv.gz"):
            yield prints.data_api_csv(path)
        for path in self._paths("trades/data_api_trades_*.json"):
            yield prints.data_api_json(path)
        for path in self._paths("trades/btc5m_*.json.gz"):
            yield prints.candle(path)

    def _each(
        self, pattern: str, read: Callable[[Path], tuple[list[Listing], list[Gamma]]], skip: tuple[str, ...] = ()
    ) -> tuple[list[Listing], list[Gamma]]:
        listings: list[Listing] = []
        events: list[Gamma] = []
        for path in self._paths(pattern):
            if not path.name.startswith(skip or ("\0",)):
                markets, more = read(path)
                listings += markets
                events += more
        return listings, events

    def _paths(self, pattern: str) -> Iterator[Path]:
        for path in sorted(self._folder.glob(pattern)):
            self._progress(f"reading {path.relative_to(self._folder)}")
            yield path


def _unlike(known: list[Listing], more: list[Listing]) -> list[Listing]:
    """Add the markets that are not known yet, by condition, id, token or slug."""
    found = list(known)
    names = {name for listing in known for name in _names(listing)}
    for listing in more:
        own = _names(listing)
        if names.isdisjoint(own):
            found.append(listing)
            names.update(own)
    return found


def _names(listing: Listing) -> set[tuple[str, str]]:
    gamma = listing.gamma
    names = {("id", str(gamma["id"])), ("condition", gamma.get("conditionId") or str(gamma["id"]))}
    return names | {("token", token) for token in token_ids(gamma)}


def _mark_played(tape: Tape) -> None:
    """Open the markets that are going to trade, whatever became of them later, and name the recordings' own times."""
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
    for happening in recording.happenings:
        ts_ms = timeline(happening.at_ms)
        due = max(due, ts_ms)
        yield Played(due, place, ts_ms, recording, happening)


def lines(tape: Tape, start_ms: int, speed: float, what: str) -> Iterator[dict[str, Any]]:
    """Go through messages, trades or markets of a tape, as they are sent and listed."""
    if what == "markets":
        yield from (listing.gamma for listing in tape.listings)
        return
    conditions = tape.conditions()
    for played in tape.play(start_ms, speed):
        happening = played.happening
        condition_id, outcome = conditions.get(happening.token, ("", 0))
        if isinstance(happening, Printed) and what == "trades":
            yield {
                "ts_ms": played.ts_ms,
                "condition_id": condition_id,
                "outcome": outcome,
                "token": happening.token,
                "side": happening.side,
                "price": text(happening.price),
                "size": text(happening.size),
                "tx": happening.tx,
                "wallet": happening.wallet,
                "recording": played.recording.name,
            }
        elif what == "messages" and isinstance(happening, LevelsChanged | BookSeen | Printed):
            yield happening.message(condition_id, played.ts_ms)


def main() -> None:
    """Print a tape."""
    parser = argparse.ArgumentParser(prog="python -m upstream.sandbox.tape", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--what", choices=("summary", "messages", "trades", "markets"), default="summary")
    parser.add_argument(
        "--start-ms", type=int, default=0, help="when the tape starts, as in /sandbox/status (default: 0)"
    )
    parser.add_argument("--speed", type=float, default=1.0)
    given = parser.parse_args()
    tape = read_tape(given.folder)
    if given.what == "summary":
        print(json.dumps(tape.summary(), indent=2))
    else:
        for line in lines(tape, given.start_ms, given.speed, given.what):
            sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
