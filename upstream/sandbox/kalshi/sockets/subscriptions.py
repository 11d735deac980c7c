"""Subscriptions of one connection: their filters, numbers and frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from upstream.sandbox.common.frames import frame
from upstream.sandbox.common.sockets import QueuedConnection

if TYPE_CHECKING:
    from upstream.sandbox.common.frames import FrameSocket
    from upstream.sandbox.common.sockets import Queues

BOOKS, TICKER, TRADES = "orderbook_delta", "ticker", "trade"
LIFECYCLES = ("market_lifecycle_v2", "multivariate_market_lifecycle")
CHANNELS = (BOOKS, TICKER, TRADES, *LIFECYCLES)

encode = msgspec.json.Encoder().encode


class KalshiConnection(QueuedConnection):
    """One socket and its subscriptions, by sid."""

    def __init__(self, connection_id: int, hub: Queues, socket: FrameSocket) -> None:
        super().__init__(connection_id, hub, socket)
        self.subscriptions: dict[int, Subscription] = {}
        self.last_sid = 0
        self.pinged = self.opened
        self.commands = 0  # in the second that began at `second`
        self.second = 0.0

    def of_channel(self, channel: str) -> Subscription | None:
        """Return the subscription of a channel."""
        return next((one for one in self.subscriptions.values() if one.channel == channel), None)

    def say(self, message: dict[str, Any]) -> None:
        """Queue an answer."""
        self.push(frame(encode(message) + b"\n"))


class Subscription:
    """One channel of one connection; without `tickers` it follows everything."""

    __slots__ = ("_heads", "channel", "connection", "quiet", "seq", "sid", "tickers", "yes")

    def __init__(
        self, sid: int, channel: str, connection: KalshiConnection, tickers: list[str] | None, *, yes: bool, quiet: bool
    ) -> None:
        self.sid, self.channel, self.connection = sid, channel, connection
        self.tickers = None if tickers is None else dict.fromkeys(tickers)
        self.yes = yes  # whether prices of the NO side are sent as YES prices
        self.quiet = quiet  # whether the list of markets is left out of answers
        self.seq = 0
        self._heads: dict[str, bytes] = {}

    def next_seq(self) -> int:
        """Return the next number of the subscription."""
        self.seq += 1
        return self.seq

    def message(self, kind: str, body: bytes, sent_ms: int, identity: int = 0) -> bytes:
        """Return a message, numbered unless it is a ticker."""
        head = self._heads.get(kind)
        if head is None:
            numbered = b"" if kind == TICKER else b'"seq":'
            head = self._heads[kind] = b'{"type":"%b","sid":%d,%b' % (kind.encode(), self.sid, numbered)
        seq = b"" if kind == TICKER else b"%d," % self.next_seq()
        echo = b'"id":%d,' % identity if identity else b""
        return b'%b%b%b"sending_ts_ms":%d,"msg":%b}\n' % (head, seq, echo, sent_ms, body)

    def state(self) -> dict[str, Any]:
        """Return the subscription's state as JSON."""
        return {
            "sid": self.sid,
            "channel": self.channel,
            "markets": None if self.tickers is None else len(self.tickers),
            "seq": self.seq,
        }
