"""Subscriptions of one connection: what is followed, what was asked for, and what the exchange has confirmed."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from upstream.kalshi.socket.messages import MOMENTARY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BOOKS = "orderbook_delta"
TICKER = "ticker"
TRADES = "trade"
LIFECYCLE = "market_lifecycle_v2"
UNSEQUENCED = frozenset({TICKER})

MAX_TICKERS_PER_COMMAND = 1000
MAX_COMMANDS_REMEMBERED = 1000
ACKNOWLEDGED_S = 10.0
"""Seconds that the exchange has to answer a command."""
FIRST_SNAPSHOTS_S = 10.0
"""Seconds that it has to send the first snapshots by itself."""
SNAPSHOTS_S = 5.0
"""Seconds that it has to send those that were asked for; twice as long each time that it does not."""
MIN_REQUEST_S = 1.0
"""Seconds between two requests for snapshots."""
FIRST_RETRY_S = 1.0
MAX_RETRY_S = 60.0

INFINITE = float("inf")

Command = dict[str, object]


@dataclass
class SocketSubscription:
    """A channel's subscription, under its number on this connection."""

    sid: int
    channel: str
    tickers: dict[str, None] | None
    """Markets that it has, in order; None: all of the exchange."""
    seq: int = 0
    last: Any = None
    """The message with that number."""
    since_ms: int | None = None
    refused: dict[str, float] = field(default_factory=dict)
    """Markets that the exchange does not add, and when to ask again; infinity: not on this connection."""
    unanchored: dict[str, float] = field(default_factory=dict)
    """Markets whose book has no snapshot, and when to ask for it."""
    snapshots_at: float = INFINITE
    """When to look who is due."""
    asked_at: float = -INFINITE
    retry_s: float = SNAPSHOTS_S

    def unanchor(self, tickers: Iterable[str], due: float) -> None:
        """Note markets whose book needs a snapshot, to be asked for at a time."""
        self.unanchored.update(dict.fromkeys(tickers, due))
        self.snapshots_at = min(self.snapshots_at, max(due, self.asked_at + MIN_REQUEST_S))

    def anchor(self, ticker: str) -> None:
        """Note that a market's snapshot has come, or is not wanted any more."""
        self.unanchored.pop(ticker, None)
        if not self.unanchored:
            self.snapshots_at, self.retry_s = INFINITE, SNAPSHOTS_S


@dataclass
class PendingCommand:
    """A command that was sent."""

    due: float
    """When its answer is overdue; infinity if other messages show that it was carried out."""
    channels: dict[str, None] = field(default_factory=dict)
    """Those not acknowledged yet."""
    sid: int = 0
    tickers: list[str] | None = None
    action: str = ""
    """What an update does: add_markets, delete_markets or get_snapshot."""


class SessionSubscriptions:
    """Commands that bring what is subscribed to what is wanted. Time is an argument throughout."""

    def __init__(self, channels: Sequence[str], everywhere: Sequence[str]) -> None:
        self.wanted: dict[str, None] = {}
        self.by_sid: dict[int, SocketSubscription] = {}
        self.commands: list[Command] = []
        """To be sent, in order."""
        self.pending: dict[int, PendingCommand] = {}
        self.confirmations = 0
        """How many commands the exchange has answered with what it sends."""
        self._channels = channels
        self._everywhere = everywhere
        self._ids = count(1)
        self._asked: set[str] = set()
        self._retries: dict[str, tuple[float, float]] = {}

    def begin(self, now: float) -> None:
        """Subscribe to everything wanted, as far as it is not; called again whenever that has changed."""
        fresh = [channel for channel in self._everywhere if self._may_ask(channel, now)]
        if fresh:
            self._subscribe(fresh, None, now)
        fresh = [channel for channel in self._channels if self._may_ask(channel, now)]
        if fresh and self.wanted:
            self._subscribe(fresh, [*self.wanted][:MAX_TICKERS_PER_COMMAND], now)
        for subscription in [*self.by_sid.values()]:
            if subscription.tickers is not None:
                self._adapt(subscription, subscription.tickers, now)

    @property
    def unsettled(self) -> bool:
        """Whether something wanted has to be asked for again, some time after it was refused or has ended."""
        channels = len(self._channels) + len(self._everywhere)
        return len(self._asked) < channels or any(each.refused for each in self.by_sid.values())

    def _may_ask(self, channel: str, now: float) -> bool:
        return channel not in self._asked and now >= self._retries.get(channel, (now, 0.0))[0]

    def _subscribe(self, channels: list[str], tickers: list[str] | None, now: float) -> None:
        self._asked.update(channels)
        params: dict[str, Any] = {"channels": channels, "use_yes_price": False}
        if tickers is not None:
            params["market_tickers"] = tickers
        self._command(
            "subscribe", params, PendingCommand(now + ACKNOWLEDGED_S, dict.fromkeys(channels), tickers=tickers)
        )

    def _adapt(self, subscription: SocketSubscription, have: dict[str, None], now: float) -> None:
        """Add and delete markets of one subscription; without any it would have all of the exchange, and ends."""
        if not self.wanted:
            self._command("unsubscribe", {"sids": [subscription.sid]}, PendingCommand(now + ACKNOWLEDGED_S))
            self.remove(subscription)
            return
        for each in [each for each in subscription.refused if each not in self.wanted]:
            del subscription.refused[each]  # whoever follows it anew has it asked for anew
        more = [each for each in self.wanted if each not in have and now >= subscription.refused.get(each, now)]
        for some in _portions(more):
            self._update(subscription, "add_markets", some, now + ACKNOWLEDGED_S)
            have.update(dict.fromkeys(some))
            if subscription.channel == BOOKS:
                subscription.unanchor(some, now + FIRST_SNAPSHOTS_S)
        for some in _portions([each for each in have if each not in self.wanted]):
            self._update(subscription, "delete_markets", some, now + ACKNOWLEDGED_S)
            for each in some:
                del have[each]
                subscription.anchor(each)

    def acknowledge(self, command_id: int, channel: str, sid: int, now: float) -> bool:
        """Take note of a new subscription; return whether it was asked for."""
        pending = self.pending.get(command_id)
        if pending is None or channel not in pending.channels or sid in self.by_sid:
            return False
        del pending.channels[channel]
        if not pending.channels:
            del self.pending[command_id]
        tickers = None if pending.tickers is None else dict.fromkeys(pending.tickers)
        subscription = SocketSubscription(sid, channel, tickers)
        if channel == BOOKS:
            subscription.unanchor(tickers or (), now + FIRST_SNAPSHOTS_S)
        self.by_sid[sid] = subscription
        self.confirmations += 1
        self._asked.add(channel)  # it may have been refused before
        self.begin(now)
        return True

    def has(self, channel: str, ticker: str) -> bool:
        """Return whether the exchange has confirmed that it sends a market's messages of a channel."""
        return any(
            subscription.channel == channel
            and ticker in (subscription.tickers or ())
            and not any(
                pending.sid == subscription.sid
                and pending.action == "add_markets"
                and ticker in (pending.tickers or ())
                for pending in self.pending.values()
            )
            for subscription in self.by_sid.values()
        )

    def confirm(self, command_id: int, tickers: list[str] | None) -> list[str]:
        """Take note of an update; return markets that were to be added, and are not among those it lists."""
        self.confirmations += 1
        pending = self.pending.pop(command_id, None)
        subscription = self.by_sid.get(pending.sid) if pending else None
        if pending is None or subscription is None or tickers is None or pending.action != "add_markets":
            return []
        listed = set(tickers)
        missing = [each for each in pending.tickers or () if each in self.wanted and each not in listed]
        self._forget(subscription, missing)
        subscription.refused.update(dict.fromkeys(missing, INFINITE))
        return missing

    def fail(self, command_id: int, code: int, named: list[str], now: float) -> tuple[PendingCommand | None, list[str]]:
        """Take note of a refused command; return it, and the markets that it leaves without what it asked for.

        Those are the markets that the error names, else all of the command. They are not added again, and their
        snapshots not asked for soon; the others are. After a `MOMENTARY` error all is asked for again, later.
        Channels that are acknowledged all the same are taken: whether one fails them all is not documented.
        """
        pending = self.pending.pop(command_id, None)
        if pending is None:
            return None, named
        asked = pending.tickers or []
        if pending.channels:
            pending.due = INFINITE
            self.pending[command_id] = pending
            if code in MOMENTARY:
                for channel in pending.channels:
                    self._asked.discard(channel)
                    self.retry(channel, now)
            return pending, asked
        faulty = set(named)
        refused = [each for each in asked if each in faulty] or asked
        subscription = self.by_sid.get(pending.sid)
        if subscription is not None and pending.action == "add_markets":
            self._forget(subscription, asked)
            subscription.refused.update(dict.fromkeys(refused, now + MAX_RETRY_S if code in MOMENTARY else INFINITE))
        elif subscription is not None and pending.action == "get_snapshot" and code not in MOMENTARY:
            self._ask_without(subscription, asked, refused, now)
        return pending, refused

    def _ask_without(self, subscription: SocketSubscription, asked: list[str], refused: list[str], now: float) -> None:
        """Ask for snapshots again without those refused, much later for these; in halves if any may be at fault."""
        if len(refused) == len(asked) > 1:
            for some in _portions(asked, (len(asked) + 1) // 2):
                self._update(subscription, "get_snapshot", some, INFINITE)
            return
        missing = [each for each in asked if each in subscription.unanchored]
        subscription.unanchor(missing, now)
        subscription.unanchored.update(dict.fromkeys(set(refused).intersection(missing), now + MAX_RETRY_S))

    def _forget(self, subscription: SocketSubscription, tickers: list[str]) -> None:
        for each in tickers:
            (subscription.tickers or {}).pop(each, None)
            subscription.anchor(each)

    def remove(self, subscription: SocketSubscription) -> None:
        """Forget a subscription; what is wanted of it is subscribed to again by `begin`."""
        del self.by_sid[subscription.sid]
        for pending in self.pending.values():
            if pending.sid == subscription.sid:
                pending.due = INFINITE  # the exchange may not answer any more
        self._asked.discard(subscription.channel)

    def retry(self, channel: str, now: float) -> None:
        """Subscribe to a channel again that the exchange has ended: later each time, if it had not lasted."""
        last, waited_s = self._retries.get(channel, (now, 0.0))
        wait_s = FIRST_RETRY_S if not waited_s or now - last > MAX_RETRY_S else min(2 * waited_s, MAX_RETRY_S)
        self._retries[channel] = (now + wait_s, wait_s)

    def request_snapshots(self, subscription: SocketSubscription, now: float) -> list[str]:
        """Ask for the books without a snapshot, if it is time to; return their markets."""
        if now < subscription.snapshots_at:
            return []
        tickers = [ticker for ticker, due in subscription.unanchored.items() if due <= now]
        for some in _portions(tickers):
            self._update(subscription, "get_snapshot", some, INFINITE)
        if tickers:
            subscription.unanchored.update(dict.fromkeys(tickers, now + subscription.retry_s))
            subscription.asked_at = now
            subscription.retry_s = min(2 * subscription.retry_s, MAX_RETRY_S)
        first = min(subscription.unanchored.values(), default=INFINITE)
        subscription.snapshots_at = max(first, subscription.asked_at + MIN_REQUEST_S)
        return tickers

    def overdue(self, now: float) -> bool:
        """Return whether the exchange owes an answer to a command."""
        return any(pending.due <= now for pending in self.pending.values())

    def _update(self, subscription: SocketSubscription, action: str, tickers: list[str], due: float) -> None:
        params = {"sids": [subscription.sid], "market_tickers": tickers, "action": action}
        pending = PendingCommand(due, sid=subscription.sid, tickers=tickers, action=action)
        self._command("update_subscription", params, pending)

    def _command(self, name: str, params: dict[str, Any], pending: PendingCommand) -> None:
        if len(self.pending) >= MAX_COMMANDS_REMEMBERED:
            oldest = next((each for each, command in self.pending.items() if command.due == INFINITE), 0)
            self.pending.pop(oldest, None)
        number = next(self._ids)
        self.pending[number] = pending
        self.commands.append({"id": number, "cmd": name, "params": params})


def _portions(tickers: list[str], most: int = MAX_TICKERS_PER_COMMAND) -> Iterable[list[str]]:
    for start in range(0, len(tickers), most):
        yield tickers[start : start + most]
