"""Commands of a client: subscribe, unsubscribe, update and list, each answered as Kalshi answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from upstream.sandbox.kalshi.exchange.entries import Ticker
from upstream.sandbox.kalshi.sockets.subscriptions import (
    BOOKS,
    CHANNELS,
    LIFECYCLES,
    TICKER,
    KalshiConnection,
    Subscription,
    encode,
)

if TYPE_CHECKING:
    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.exchange.listings import KalshiMarket

MAX_COMMANDS_A_SECOND = 10_000
ERRORS = {
    1: "Unable to process message",
    2: "Params required",
    3: "Channels required",
    4: "Subscription IDs required",
    5: "Unknown command",
    7: "Unknown subscription ID",
    8: "Unknown channel name",
    10: "Channel error",
    11: "Invalid parameter",
    12: "Exactly one subscription ID is required",
    13: "Unsupported action",
    14: "Market ticker required",
    15: "Action required",
    25: "Subscription buffer overflow",
    26: "Market limit exceeded",
    27: "Command rate limit exceeded",
}


class CommandError(Exception):
    """A command that is answered with an error."""

    def __init__(self, code: int) -> None:
        super().__init__(ERRORS[code])
        self.code = code


class CommandHub(Protocol):
    """What commands need of the hub."""

    exchange: KalshiExchange
    max_markets: int

    def send(self, subscription: Subscription, kind: str, body: bytes) -> None:
        """Queue a numbered message."""

    def follow(self, subscription: Subscription, tickers: list[str]) -> None:
        """Send a subscription what happens in some markets."""

    def follow_all(self, subscription: Subscription) -> None:
        """Send a subscription what happens in all markets."""

    def unfollow(self, subscription: Subscription, tickers: list[str]) -> None:
        """Send a subscription nothing more of some markets."""

    def drop(self, subscription: Subscription) -> None:
        """End a subscription."""

    def send_book(self, subscription: Subscription, market: KalshiMarket, identity: int = 0) -> None:
        """Send a book."""


class CommandHandler:
    """Handler of all connections' commands."""

    def __init__(self, hub: CommandHub) -> None:
        self._hub = hub
        self._commands = {
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "update_subscription": self._update,
            "list_subscriptions": self._list,
        }

    def handle(self, connection: KalshiConnection, text: str) -> None:
        """Answer one command."""
        identity = 0
        try:
            self._count(connection)
            given = _object(text)
            identity = given["id"] if type(given.get("id")) is int else 0
            self._command(connection, identity, given)
        except CommandError as refused:
            connection.say(_echo(identity) | error(refused.code))

    def _command(self, connection: KalshiConnection, identity: int, given: dict[str, Any]) -> None:
        name, params = given.get("cmd"), given.get("params")
        command = self._commands.get(name) if isinstance(name, str) else None
        if command is None:
            raise CommandError(5)
        if name != "list_subscriptions" and not isinstance(params, dict):
            raise CommandError(2)
        command(connection, identity, params or {})

    def _count(self, connection: KalshiConnection) -> None:
        now = asyncio.get_running_loop().time()
        if now - connection.second >= 1:
            connection.second, connection.commands = now, 0
        connection.commands += 1
        if connection.commands > MAX_COMMANDS_A_SECOND:
            raise CommandError(27)

    # --- Subscribing ---

    def _subscribe(self, connection: KalshiConnection, identity: int, params: dict[str, Any]) -> None:
        channels = _texts(params.get("channels"), missing=3)
        if any(channel not in CHANNELS for channel in channels):
            raise CommandError(8)
        tickers = self._tickers(params, channels)
        if BOOKS in channels and not tickers:
            raise CommandError(14)
        self._check_room(connection, len(tickers or ()) * len(channels))
        fresh: list[tuple[Subscription, list[str]]] = []
        for channel in dict.fromkeys(channels):
            known = connection.of_channel(channel)
            if known is not None:  # a repeated subscribe adds markets
                fresh.append((known, self._add(known, tickers or [])))
                self._acknowledge(known, identity)
                continue
            subscription = self._open(connection, channel, None if channel in LIFECYCLES else tickers, params)
            told = {"channel": channel, "sid": subscription.sid}
            connection.say({"type": "subscribed", **_echo(identity), "msg": told})
            fresh.append((subscription, list(subscription.tickers or ())))
        for subscription, added in fresh:
            self._send_state(subscription, added, wanted=params.get("send_initial_snapshot") is True)

    def _check_room(self, connection: KalshiConnection, more: int) -> None:
        followed = sum(len(one.tickers or ()) for one in connection.subscriptions.values())
        if followed + more > self._hub.max_markets:
            raise CommandError(26)

    def _open(
        self, connection: KalshiConnection, channel: str, tickers: list[str] | None, params: dict[str, Any]
    ) -> Subscription:
        connection.last_sid += 1
        subscription = Subscription(
            connection.last_sid,
            channel,
            connection,
            tickers,
            yes=params.get("use_yes_price") is True,
            quiet=params.get("skip_ticker_ack") is True,
        )
        connection.subscriptions[subscription.sid] = subscription
        if subscription.tickers is None:
            self._hub.follow_all(subscription)
        else:
            self._hub.follow(subscription, list(subscription.tickers))
        return subscription

    def _add(self, subscription: Subscription, tickers: list[str]) -> list[str]:
        """Add markets to a subscription, and return those that it did not follow; one without a filter keeps none."""
        if subscription.tickers is None:
            return []
        added = [ticker for ticker in dict.fromkeys(tickers) if ticker not in subscription.tickers]
        subscription.tickers |= dict.fromkeys(added)
        self._hub.follow(subscription, added)
        return added

    def _send_state(self, subscription: Subscription, tickers: list[str], *, wanted: bool) -> None:
        """Send the books of markets; the figures, too, if they are asked for. Unknown tickers get nothing."""
        markets = self._hub.exchange.markets
        for market in (markets[ticker] for ticker in tickers if ticker in markets):
            if subscription.channel == BOOKS:
                self._hub.send_book(subscription, market)
            elif subscription.channel == TICKER and wanted:
                figures = Ticker.of(market, self._hub.exchange.now_ms)
                self._hub.send(subscription, TICKER, encode(figures.body()))

    def _tickers(self, params: dict[str, Any], channels: list[str]) -> list[str] | None:
        """Return the markets that a command names; None if it names none."""
        one, many = params.get("market_ticker"), params.get("market_tickers")
        if one is not None and many is not None:
            raise CommandError(11)
        ids = params.get("market_ids") or ([params["market_id"]] if params.get("market_id") else None)
        if ids is not None:
            if channels != [TICKER]:
                raise CommandError(11)
            known = self._hub.exchange.by_id
            return [known[one].ticker for one in _texts(ids, missing=11) if one in known]
        if many is None:
            many = None if one is None else [one]
        return None if many is None or many == [] else _texts(many, missing=11)

    def _acknowledge(self, subscription: Subscription, identity: int) -> None:
        told = {} if subscription.quiet else {"market_tickers": list(subscription.tickers or ())}
        numbered = {"sid": subscription.sid, "seq": subscription.next_seq()}
        subscription.connection.say({**_echo(identity), **numbered, "type": "ok", "msg": told})

    # --- The other commands ---

    def _unsubscribe(self, connection: KalshiConnection, identity: int, params: dict[str, Any]) -> None:
        sids = params.get("sids")
        if not isinstance(sids, list) or not sids:
            raise CommandError(4)
        found = [_known(connection, sid) for sid in sids]
        for subscription in found:
            self._hub.drop(subscription)
            numbered = {"sid": subscription.sid, "seq": subscription.next_seq()}
            connection.say({**_echo(identity), **numbered, "type": "unsubscribed"})

    def _update(self, connection: KalshiConnection, identity: int, params: dict[str, Any]) -> None:
        sids = params.get("sids", [params["sid"]] if "sid" in params else None)
        if not isinstance(sids, list):
            raise CommandError(4)
        if len(sids) != 1:
            raise CommandError(12)
        subscription = _known(connection, sids[0])
        action = _action(params)
        tickers = self._tickers(params, [subscription.channel])
        if not tickers:
            raise CommandError(14)
        if action == "get_snapshot":
            self._snapshots(subscription, tickers, identity)
            return
        if subscription.tickers is None:
            raise CommandError(11)
        if action == "add_markets":
            self._check_room(connection, len(tickers))
            added = self._add(subscription, tickers)
            self._acknowledge(subscription, identity)
            self._send_state(subscription, added, wanted=params.get("send_initial_snapshot") is True)
            return
        gone = [ticker for ticker in dict.fromkeys(tickers) if ticker in subscription.tickers]
        for ticker in gone:
            del subscription.tickers[ticker]
        self._hub.unfollow(subscription, gone)
        self._acknowledge(subscription, identity)

    def _snapshots(self, subscription: Subscription, tickers: list[str], identity: int) -> None:
        if subscription.channel != BOOKS:
            raise CommandError(13)
        markets = self._hub.exchange.markets
        for market in (markets[ticker] for ticker in tickers if ticker in markets):
            self._hub.send_book(subscription, market, identity)

    def _list(self, connection: KalshiConnection, identity: int, _params: dict[str, Any]) -> None:
        found = [{"channel": one.channel, "sid": one.sid} for one in connection.subscriptions.values()]
        connection.say({**_echo(identity), "type": "ok", "msg": found})


def error(code: int) -> dict[str, Any]:
    """Return an error message."""
    return {"type": "error", "msg": {"code": code, "msg": ERRORS.get(code, "Error")}}


def _echo(identity: int) -> dict[str, int]:
    """Return the id of a command as its answer has it; 0 counts as none."""
    return {"id": identity} if identity else {}


def _object(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        raise CommandError(1) from None
    return found


def _action(params: dict[str, Any]) -> str:
    action = params.get("action")
    if not action:
        raise CommandError(15)
    if action not in ("add_markets", "delete_markets", "get_snapshot"):
        raise CommandError(13)
    return str(action)


def _known(connection: KalshiConnection, sid: Any) -> Subscription:
    subscription = connection.subscriptions.get(sid) if type(sid) is int else None
    if subscription is None:
        raise CommandError(7)
    return subscription


def _texts(value: Any, *, missing: int) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise CommandError(missing)
    return value
