"""Kalshi's WebSocket: who follows what, and the messages on their way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from upstream.sandbox.common.answers import answer
from upstream.sandbox.common.book import BUY, SELL
from upstream.sandbox.common.frames import frame
from upstream.sandbox.common.sockets import MAX_QUEUE, ConnectionHub
from upstream.sandbox.kalshi.exchange.entries import Notice
from upstream.sandbox.kalshi.formats import contracts, dollars
from upstream.sandbox.kalshi.signatures import INCORRECT
from upstream.sandbox.kalshi.sockets.commands import CommandHandler, error
from upstream.sandbox.kalshi.sockets.subscriptions import CHANNELS, TICKER, KalshiConnection, Subscription, encode
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.websockets import WebSocket

    from upstream.sandbox.common.frames import FrameSocket
    from upstream.sandbox.kalshi.exchange.entries import KalshiEntry
    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.exchange.listings import KalshiMarket
    from upstream.sandbox.kalshi.faults import KalshiFault, KalshiFaults
    from upstream.sandbox.kalshi.signatures import KeyRing

PING = b"\x89\x09heartbeat"
PING_S = 10.0
MAX_SUBSCRIBED = 500_000  # markets, by all subscriptions of a connection
OVERFLOW = 25


class KalshiHub(ConnectionHub[KalshiConnection]):
    """All connections; a message's body is encoded once, however many receive it."""

    faults: KalshiFaults
    exchange: KalshiExchange

    def __init__(
        self, faults: KalshiFaults, keys: KeyRing, *, queue_size: int = MAX_QUEUE, max_markets: int = MAX_SUBSCRIBED
    ) -> None:
        super().__init__(faults, queue_size=queue_size)
        self.max_markets = max_markets
        self._keys = keys
        self._commands = CommandHandler(self)
        self._followers: dict[str, dict[str, tuple[Subscription, ...]]] = {channel: {} for channel in CHANNELS}
        self._unfiltered: dict[str, tuple[Subscription, ...]] = dict.fromkeys(CHANNELS, ())
        self.on_fault.append(self._apply_fault)

    # --- Called by the exchange ---

    def publish(self, channel: str, ticker: str, entry: KalshiEntry) -> int:
        """Queue a message for all subscriptions of a channel that follow a market, and return their number."""
        receivers = self._followers[channel].get(ticker, ()) + self._unfiltered[channel]
        bodies: dict[bool, bytes] = {}
        for subscription in receivers:
            body = bodies.get(subscription.yes)
            if body is None:
                body = bodies[subscription.yes] = encode(entry.body(yes=subscription.yes))
            self.send(subscription, entry.kind, body, entry.n)
        return len(receivers)

    def send(self, subscription: Subscription, kind: str, body: bytes, n: int = 0, identity: int = 0) -> None:
        """Number a message, and queue it subject to faults."""
        connection = subscription.connection
        for fault_kind, step in SEQ_FAULTS if self.faults.planned and kind != TICKER and subscription.seq else ():
            fault = self.faults.of_kind(fault_kind, connection.id)
            if fault is not None:
                subscription.seq += step
                self.record(fault, connection.id, n)
        message = subscription.message(kind, body, self.exchange.now_ms, identity)
        connection.offer(message, frame(message), n)

    # --- Called by commands ---

    def follow(self, subscription: Subscription, tickers: list[str]) -> None:
        """Send a subscription what happens in some markets."""
        followers = self._followers[subscription.channel]
        for ticker in tickers:
            followers[ticker] = (*followers.get(ticker, ()), subscription)

    def follow_all(self, subscription: Subscription) -> None:
        """Send a subscription what happens in all markets."""
        self._unfiltered[subscription.channel] += (subscription,)

    def unfollow(self, subscription: Subscription, tickers: list[str]) -> None:
        """Send a subscription nothing more of some markets."""
        followers = self._followers[subscription.channel]
        for ticker in tickers:
            others = tuple(one for one in followers.get(ticker, ()) if one is not subscription)
            if others:
                followers[ticker] = others
            else:
                followers.pop(ticker, None)

    def drop(self, subscription: Subscription) -> None:
        """End a subscription."""
        subscription.connection.subscriptions.pop(subscription.sid, None)
        if subscription.tickers is None:
            others = tuple(one for one in self._unfiltered[subscription.channel] if one is not subscription)
            self._unfiltered[subscription.channel] = others
        else:
            self.unfollow(subscription, list(subscription.tickers))

    def send_book(self, subscription: Subscription, market: KalshiMarket, identity: int = 0) -> None:
        """Send a book; the key of an empty side is left out."""
        body: dict[str, Any] = {"market_ticker": market.ticker, "market_id": market.id}
        yes, no = market.book.side(BUY), market.book.side(SELL)
        if yes[0]:
            body["yes_dollars_fp"] = [[dollars(price), contracts(size)] for price, size in zip(*yes, strict=True)]
        if no[0]:
            prices = no[0] if subscription.yes else [ONE - price for price in no[0]]
            levels = [[dollars(price), contracts(size)] for price, size in zip(prices, no[1], strict=True)]
            body["no_dollars_fp"] = levels[::-1]
        self.send(subscription, "orderbook_snapshot", encode(body), 0, identity)

    # --- Called by the sockets ---

    def denial(self, websocket: WebSocket) -> Response | None:
        """Return the response that denies a new socket: a fault's, or a wrong signature's."""
        refused = super().denial(websocket)
        if refused is not None:
            return refused
        rejects = self.faults.of_kind("reject_signature") is not None
        body = INCORRECT if rejects else self._keys.refusal("GET", websocket.scope["path"], websocket.headers)
        return None if body is None else answer(body, 401)

    def connect(self, connection_id: int, socket: FrameSocket) -> KalshiConnection:
        """Return a new connection."""
        return KalshiConnection(connection_id, self, socket)

    def receive(self, connection: KalshiConnection, text: str) -> None:
        """Handle a client's command."""
        self._commands.handle(connection, text)

    def forget(self, connection: KalshiConnection) -> None:
        """Forget a connection that has ended."""
        for subscription in list(connection.subscriptions.values()):
            self.drop(subscription)
        super().forget(connection)

    def disconnect_slow(self, connection: KalshiConnection) -> None:
        """End the subscriptions of a connection that does not read what it is sent."""
        self.slow += 1
        connection.clear()
        self._end_subscriptions(connection, OVERFLOW)

    def _end_subscriptions(self, connection: KalshiConnection, code: int) -> None:
        for subscription in list(connection.subscriptions.values()):
            self.drop(subscription)
            about = {"sid": subscription.sid, "seq": subscription.next_seq()}
            connection.say(error(code) | about)

    # --- Faults and state ---

    def _apply_fault(self, fault: KalshiFault) -> None:
        if fault.kind != "end_subscription":
            return
        for connection in list(self.connections.values()):
            if fault.aims_at(connection.id):
                fault.hits += 1
                self._end_subscriptions(connection, fault.code)
        self.faults.stop(fault.id)

    def corrupted(self, kind: str, message: bytes) -> bytes:  # noqa: ARG002 - there is one kind
        """Return a message with a size changed."""
        return self.faults.corrupted(message)

    def write_fault(self, detail: dict[str, Any]) -> None:
        """Write into the truth log what a fault did."""
        self.exchange.log.write(Notice(ts_ms=self.exchange.now_ms, type="fault", msg=detail))

    def tick(self) -> None:
        """Start due faults, and ping connections; called several times a second."""
        super().tick()
        self.exchange.paused = self.faults.paused()
        now = asyncio.get_running_loop().time()
        for connection in list(self.connections.values()):
            if now - connection.pinged >= PING_S:
                connection.pinged = now
                connection.push_first(PING)

    def state(self) -> dict[str, Any]:
        """Return the connections' state as JSON."""
        return {
            "open": len(self.connections),
            "opened": self.opened,
            "overflows": self.slow,
            "refused": self.refused,
            "connections": [
                {
                    "id": connection.id,
                    "sent": connection.sent,
                    "queued": connection.queued,
                    "subscriptions": [one.state() for one in connection.subscriptions.values()],
                }
                for connection in self.connections.values()
            ],
        }


SEQ_FAULTS = (("skip_seq", 1), ("repeat_seq", -1))
