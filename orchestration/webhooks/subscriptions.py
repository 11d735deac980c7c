"""Webhook subscriptions: stream events in webhook terms, and the webhooks that each is delivered to."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from config.exchanges import DEFAULT, exchange_of
from sql.database import MICRO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from uuid import UUID

    from sql.stream_reader import StreamEvent

MARKET = {"ACTIVE": "reopened", "CLOSED": "closed", "RESOLVED": "resolved"}
MISSED = "webhook.missed"
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}\Z")


class _Data(msgspec.Struct, gc=False):
    """The fields of a record that decide who receives it."""

    type: str = ""
    from_status: str | None = None
    to_status: str = ""
    value: float | None = None
    value_usd: float | None = None
    maker: str = ""
    taker: str = ""


class _Message(msgspec.Struct, gc=False):
    ts: int
    data: msgspec.Raw


_message = msgspec.json.Decoder(_Message)
_data = msgspec.json.Decoder(_Data)


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """An event, and the data that is sent for it."""

    seq: int
    kind: str
    """The stream's name of it."""
    type: str
    """The webhooks' name of it: `signal.whale_alert`."""
    market_id: str | None
    usd: int | None
    """Micro-USD; None if it has no value."""
    wallets: frozenset[bytes]
    watchers: frozenset[int]
    """The accounts that watched the wallet at that time."""
    body: str


def event(stored: StreamEvent) -> WebhookEvent:
    """Parse an event of the stream."""
    kind, wallet = stored.type, stored.wallet
    said = _message.decode(stored.message)
    data = _read(said.data)
    usd = data.value if data.type == "whale_alert" else data.value_usd
    name = {"signal": f"signal.{data.type}", "market": f"market.{_change(data)}"}.get(kind, kind)
    payload = {
        "type": name,
        "timestamp": instant(said.ts),
        "seq": stored.seq,
        "market_id": stored.market_id,
        "data": said.data,
    }
    return WebhookEvent(
        seq=stored.seq,
        kind=kind,
        type=name,
        market_id=stored.market_id,
        usd=None if usd is None else round(usd * MICRO),
        wallets=frozenset([wallet] if wallet else map(_address, filter(_ADDRESS.match, (data.maker, data.taker)))),
        watchers=frozenset(stored.watchers or ()),
        body=msgspec.json.encode(payload).decode(),
    )


def _read(record: msgspec.Raw) -> _Data:
    try:
        return _data.decode(record)
    except msgspec.ValidationError:  # of an unexpected shape: delivered by its kind alone, and blocks nothing
        return _Data()


def _address(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def instant(ts_ms: int) -> str:
    """Format milliseconds as RFC 3339."""
    return datetime.fromtimestamp(ts_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _change(data: _Data) -> str:
    return "listed" if data.from_status is None else MARKET.get(data.to_status, "changed")


@dataclass(frozen=True, slots=True)
class Subscription:
    """The filter of a webhook; None means any."""

    webhook_id: UUID
    account_id: int
    events: frozenset[str]
    market_ids: frozenset[str] | None
    wallets: frozenset[bytes] | None
    min_usd: int | None
    since_seq: int

    def wants(self, event: WebhookEvent) -> bool:
        """Return whether an event whose kind and market match is for this webhook."""
        return (
            event.seq > self.since_seq
            and (event.kind in self.events or event.type in self.events)
            and (self.min_usd is None or event.usd is None or event.usd >= self.min_usd)
            and self._of_wallet(event)
        )

    def _of_wallet(self, event: WebhookEvent) -> bool:
        if self.wallets is not None:
            return not event.wallets or not self.wallets.isdisjoint(event.wallets)
        # A wallet's activity goes to those who name it and watch it; nobody else may learn who watches it.
        return event.kind != "wallet_activity" or self.account_id in event.watchers


class Subscriptions:
    """All subscriptions, indexed by kind and market."""

    def __init__(self, rows: Iterable[Sequence[Any]] = ()) -> None:
        self._found: dict[tuple[str, str | None], list[Subscription]] = defaultdict(list)
        self._since: dict[UUID, int] = {}
        self.since: int | None = None  # nobody wants earlier events
        for webhook_id, account_id, events, market_ids, wallets, min_usd, since_seq in rows:
            wish = Subscription(
                webhook_id,
                account_id,
                frozenset(events),
                None if market_ids is None else frozenset(market_ids),
                None if wallets is None else frozenset(wallets),
                min_usd,
                since_seq,
            )
            self._since[webhook_id] = since_seq
            self.since = since_seq if self.since is None else min(self.since, since_seq)
            for kind in {name.partition(".")[0] for name in events}:
                for market_id in [None] if wish.market_ids is None else wish.market_ids:
                    self._found[kind, market_id].append(wish)
        self.kinds = frozenset(kind for kind, _ in self._found)

    def missed(self, after: int, upto: int, now: float) -> list[tuple[UUID, int, str, str]]:
        """Return rows that record, for each webhook, stream events that are gone: whether it wanted any is unknown."""
        payload = {"type": MISSED, "timestamp": instant(round(now * 1000)), "seq": upto, "market_id": None}
        return [
            (webhook_id, upto, MISSED, msgspec.json.encode({**payload, "data": gone}).decode())
            for webhook_id, since in self._since.items()
            if since < upto and (gone := {"from_seq": max(since, after) + 1, "to_seq": upto})
        ]

    def of(self, event: WebhookEvent) -> Iterator[Subscription]:
        """Return the subscriptions that want an event; those that name no markets get Polymarket's."""
        places = {(event.kind, event.market_id)}
        if event.market_id is None or exchange_of(event.market_id) == DEFAULT.name:
            places.add((event.kind, None))
        return (wish for place in places for wish in self._found.get(place, ()) if wish.wants(event))
