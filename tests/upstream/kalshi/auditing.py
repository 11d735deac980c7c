"""Audits a Kalshi feed: each book change and trade of the sandbox's log was received, or lies in a reported gap."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from upstream.kalshi.fields import SIDES
from upstream.kalshi.socket.events import BookAnchored, BookChange, Disconnected, Dropped, SequenceGap
from upstream.kalshi.socket.subscriptions import BOOKS, TRADES
from upstream.kalshi.trades import KalshiTrade
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upstream.kalshi.socket.events import FeedEvent

Span = tuple[int, int]
"""From and to, in the exchange's ms, both included."""


class FeedReport(NamedTuple):
    """Result of an audit: changes are (ticker, ms, side, price, change, size after it), trades (ticker, ms, id)."""

    compared: Counter[str]
    received: Counter[str]
    in_gaps: Counter[str]
    """Not received, within a span that the feed reported as missing."""
    unreported: list[tuple[Any, ...]]
    """Not received, and in no reported gap."""
    invented: list[tuple[Any, ...]]
    """Received, but not in the log, or more often than there."""

    def __str__(self) -> str:
        return (
            "; ".join(
                f"{self.compared[kind]:,} {kind}: {self.received[kind]:,} received, {self.in_gaps[kind]:,} in gaps"
                for kind in self.compared
            )
            + f"; {len(self.unreported)} unreported, {len(self.invented)} invented"
        )

    def assert_clean(self) -> None:
        """Assert that everything was received or reported, and that both kinds were compared."""
        assert all(self.received[kind] for kind in ("changes", "trades")), self
        assert not self.unreported, (self, self.unreported[:5])
        assert not self.invented, (self, self.invented[:5])


class FeedRecord:
    """What a feed's events say was received, and what is missing since when."""

    def __init__(self, tickers: Iterable[str]) -> None:
        self.changes: Counter[tuple[Any, ...]] = Counter()
        self.trades: Counter[tuple[Any, ...]] = Counter()
        self.gaps: Counter[str] = Counter()
        """SequenceGaps by channel and reason."""
        self.dropped: Counter[str] = Counter()
        self.connections_lost: Counter[str] = Counter()
        self.others: list[FeedEvent] = []
        self.snapshots = 0
        self.place = (0, 0)
        """Sid and number of the last message of a book."""
        self.last_trade = ""
        self._missing: dict[str, list[Span]] = defaultdict(list)  # by market, or by channel
        self._since = {**dict.fromkeys(tickers, 0), TRADES: 0}

    def take(self, events: Iterable[FeedEvent]) -> None:
        """Take note of events, in their order."""
        for event in events:
            if isinstance(event, BookChange):
                assert event.ticker not in self._since, "a change of a book that is not valid"
                self.changes[event.ticker, event.ts_ms, event.side, event.price, event.change, event.size] += 1
                self.place = (event.sid, event.seq)
            elif isinstance(event, BookAnchored):
                self.snapshots += 1
                self._found(event.ticker, event.sent_ms or 0)
                self.place = (event.sid, event.seq)
            elif isinstance(event, KalshiTrade):
                self.trades[event.ticker, event.ts_ms, event.trade_id] += 1
                self.last_trade = event.trade_id
                self._found(TRADES, event.ts_ms)
            elif isinstance(event, SequenceGap):
                self._lose(event)
            elif isinstance(event, Dropped):
                self.dropped[event.reason] += 1
            elif isinstance(event, Disconnected):
                self.connections_lost[event.reason] += 1
                for gap in event.gaps:
                    self._lose(gap)
                assert not set(event.tickers) - set(self._since), "a book is lost, and no gap says since when"
            else:
                self.others.append(event)

    @property
    def seen_faults(self) -> int:
        """How many gaps and repeated messages were reported."""
        return self.gaps.total() + self.dropped["its number came before"]

    def _lose(self, gap: SequenceGap) -> None:
        self.gaps[f"{gap.channel}: {gap.reason}"] += 1
        for key in gap.tickers if gap.channel == BOOKS else [gap.channel]:
            assert gap.since_ms is not None or gap.channel != BOOKS, gap
            self._since.setdefault(key, gap.since_ms or 0)

    def _found(self, key: str, ts_ms: int) -> None:
        if key in self._since:
            self._missing[key].append((self._since.pop(key), ts_ms))

    def audit(self, log: Iterable[dict[str, Any]], tickers: Iterable[str]) -> FeedReport:
        """Compare with the lines of a sandbox's log that are about these markets."""
        truth = {"changes": (Counter[Any](), self.changes), "trades": (Counter[Any](), self.trades)}
        followed = set(tickers)
        for line in log:
            if line["msg"].get("market_ticker") in followed:
                if line["kind"] == "orderbook_delta":
                    truth["changes"][0][_change(line)] += 1
                elif line["kind"] == "trade":
                    msg = line["msg"]
                    truth["trades"][0][msg["market_ticker"], msg["ts_ms"], msg["trade_id"]] += 1
        report = FeedReport(Counter(), Counter(), Counter(), [], [])
        for kind, (sent, got) in truth.items():
            report.compared[kind], report.received[kind] = sent.total(), (sent & got).total()
            report.invented.extend((got - sent).elements())
            for row in (sent - got).elements():
                if self._is_missing(row[0] if kind == "changes" else TRADES, row[1]):
                    report.in_gaps[kind] += 1
                else:
                    report.unreported.append((kind, *row))
        return report

    def _is_missing(self, key: str, ts_ms: int) -> bool:
        spans = self._missing[key]
        if key in self._since:
            spans = [*spans, (self._since[key], 2**63)]
        return any(from_ms <= ts_ms <= to_ms for from_ms, to_ms in spans)


def _change(line: dict[str, Any]) -> tuple[Any, ...]:
    msg = line["msg"]
    price = _micro(msg["price_dollars"])  # of YES, on either side
    price = price if msg["side"] == "yes" else ONE - price
    ticker, ts_ms, side = msg["market_ticker"], msg["ts_ms"], SIDES[msg["side"]]
    return ticker, ts_ms, side, price, _micro(msg["delta_fp"]), _micro(line.get("size_fp") or "0")


def _micro(text: str) -> int:
    return round(float(text) * ONE)
