"""Markets of the catalogue, as the exchange sends them and as rows for `sql.tables`."""

import re
from datetime import datetime
from typing import Any, Self

import msgspec

from upstream.polymarket.gamma.events import SITE, TOPICS, GammaEvent, Tag, tag_slugs, topic
from upstream.transport.catalogue import Status
from upstream.transport.numbers import MICRO, Number, instant, micro, price

CONDITION = re.compile(r"0x[0-9a-f]{64}")
NEAR_ONE = MICRO - 100
"""Micro-units: from here a payout counts as 1. AMM markets of 2020 ended at 0.99997; order books stay below 0.9999."""

_strings = msgspec.json.Decoder(list[str])


class GammaMarket(msgspec.Struct, rename="camel", kw_only=True):
    """A market, with the exchange's own names; every field may be missing, and unknown fields are in `raw` only."""

    id: str | int
    condition_id: str | None = None
    question_id: str | None = msgspec.field(default=None, name="questionID")
    slug: str | None = None
    question: str | None = None
    description: str | None = None
    group_item_title: str | None = None
    outcomes_sent: str | list[str] | None = msgspec.field(default=None, name="outcomes")
    outcome_prices_sent: str | list[Number] | None = msgspec.field(default=None, name="outcomePrices")
    clob_token_ids: str | list[str] | None = None
    position_ids: str | list[str] | None = None
    version: str | None = None
    active: bool | None = None
    closed: bool | None = None
    archived: bool | None = None
    accepting_orders: bool | None = None
    enable_order_book: bool | None = None
    start_date: str | None = None
    end_date: str | None = None
    end_date_iso: str | None = None
    event_start_time: str | None = None
    game_start_time: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    closed_time: str | None = None
    uma_end_date: str | None = None
    uma_resolution_status: str | None = None
    automatically_resolved: bool | None = None
    volume: Number | None = None
    volume_num: Number | None = None
    volume24hr: Number | None = None
    liquidity: Number | None = None
    liquidity_num: Number | None = None
    order_price_min_tick_size: Number | None = None
    order_min_size: Number | None = None
    best_bid: Number | None = None
    best_ask: Number | None = None
    last_trade_price: Number | None = None
    neg_risk: bool | None = None
    image: str | None = None
    icon: str | None = None
    category: str | None = None
    series_slug: str | None = None
    sports_market_type: str | None = None
    fee_type: str | None = None
    tags: list[Tag | str] | None = None
    events: list[GammaEvent] | None = None

    # Derived from the above. The prefix keeps these names from clashing with one the exchange may add.
    outcomes: list[str] = msgspec.field(default_factory=list, name="presage:outcomes")
    """Names by outcome index; not always Yes and No."""
    token_ids: list[str] = msgspec.field(default_factory=list, name="presage:token_ids")
    """By outcome index, for the protocol version the market trades under; empty for markets before the order book."""
    outcome_prices: list[int] = msgspec.field(default_factory=list, name="presage:outcome_prices")
    """Micro-units by outcome index; empty when the exchange sends none."""
    raw: str = msgspec.field(default="", name="presage:raw")
    """The object's JSON text as sent."""

    @classmethod
    def read(cls, text: bytes, event: GammaEvent | None = None) -> Self:
        """Decode one object; ValueError or msgspec.MsgspecError when it is inconsistent."""
        market = _market.decode(text)
        _any.decode(text)  # unknown fields are stored too: a number beyond any range or bad UTF-8 would fail there
        if event is not None and not market.events:
            market.events = [event]
        market.raw = text.decode()
        market.outcomes = _listed(market.outcomes_sent)
        market.token_ids = _listed(
            market.position_ids if market.is_v2 and market.position_ids else market.clob_token_ids
        )
        market.outcome_prices = [price(each) for each in _listed(market.outcome_prices_sent)]
        market.check()
        return market  # type: ignore[return-value]

    def check(self) -> None:
        """Refuse what would be stored wrongly: invalid ids, and lists of different lengths."""
        if self.condition_id is None and not self.question:
            raise ValueError("not a market: neither condition id nor question")
        if self.condition_id and not CONDITION.fullmatch(self.condition_id.lower()):
            raise ValueError(f"not a condition id: {self.condition_id!r:.80}")
        for token_id in self.token_ids:
            if not (token_id.isdecimal() and token_id.isascii() and len(token_id) <= 78):
                raise ValueError(f"not a token id: {token_id!r:.100}")
        if len(set(self.token_ids)) != len(self.token_ids):
            raise ValueError("one token id for two outcomes")
        for name, values in (("token ids", self.token_ids), ("outcome prices", self.outcome_prices)):
            if values and len(values) != len(self.outcomes):
                raise ValueError(f"{len(self.outcomes)} outcomes, but {len(values)} {name}")

    @property
    def is_v2(self) -> bool:
        """Whether the market trades under protocol version 2."""
        return (self.version or "v1").lower() != "v1"

    @property
    def market_id(self) -> str:
        """The condition id in lower case; "" for the few oldest objects that have none, and cannot be stored."""
        return (self.condition_id or "").lower()

    @property
    def event(self) -> GammaEvent | None:
        """The event that the market belongs to, if sent."""
        return self.events[0] if self.events else None

    def status(self) -> Status:
        """ACTIVE: open for trade; RESOLVED: closed, and the payout known, which is final; CLOSED: between."""
        if self.closed is not True:
            return "CLOSED" if self.active is False else "ACTIVE"
        return "RESOLVED" if self._payout_known() else "CLOSED"

    def _payout_known(self) -> bool:
        if not self.outcome_prices:
            return False
        resolution = (self.uma_resolution_status or "").lower()
        rest = sum(self.outcome_prices) - max(self.outcome_prices)
        if max(self.outcome_prices) == MICRO and rest == 0:
            return True
        if resolution in {"proposed", "disputed"}:
            return False  # these are last prices, however close to 1
        if max(self.outcome_prices) >= NEAR_ONE and rest <= MICRO - NEAR_ONE:
            return True
        # A shared payout looks like a price: only the exchange's status tells.
        shared = all(
            abs(each * len(self.outcome_prices) - MICRO) <= len(self.outcome_prices) for each in self.outcome_prices
        )
        return shared and (resolution == "resolved" or self.automatically_resolved is True)

    def winning_outcome(self) -> int | None:
        """Return the winning outcome's index; None when unresolved, unknown, or when the payout is shared."""
        if self.status() != "RESOLVED":
            return None
        best = max(self.outcome_prices)
        return self.outcome_prices.index(best) if best >= NEAR_ONE else None

    def closed_at(self) -> datetime | None:
        """When trading closed, if known."""
        if self.closed is not True:
            return None
        return instant(self.closed_time) or instant(self.uma_end_date)

    def resolved_at(self) -> datetime | None:
        """When the market was resolved, if it is."""
        if self.status() != "RESOLVED":
            return None
        return instant(self.uma_end_date) or instant(self.closed_time)

    def tag_slugs(self) -> list[str]:
        """Return the market's own tags, else its event's; without repeats, in order of first appearance."""
        own = tag_slugs(self.tags)
        return own or (tag_slugs(self.event.tags) if self.event else [])

    def category_name(self) -> str | None:
        """Return its own category (old objects), else the event's, else the first tag that is a topic."""
        said = self.category or (self.event.category if self.event else None)
        return topic(said, self.tag_slugs()) or self._topic_by_terms()

    def _topic_by_terms(self) -> str | None:
        """Derive a topic for an object without tags: from the kind of game, or its fee type (`crypto_fees_v2`)."""
        if self.sports_market_type:
            return "sports"
        fees = (self.fee_type or "").partition("_fees")[0]
        return fees if fees in TOPICS else None

    def series_name(self) -> str | None:
        """The slug of its series, if it has one."""
        return (self.event.series_name() if self.event else None) or self.series_slug or None

    def url(self) -> str | None:
        """Return its page on the exchange's site."""
        if self.event and self.event.slug:
            return f"{SITE}/event/{self.event.slug}" + (f"/{self.slug}" if self.slug else "")
        return f"{SITE}/market/{self.slug}" if self.slug else None

    def row(self, source: str = "exchange") -> dict[str, Any]:
        """Return a row keyed like `sql.tables.markets`; `source` is the data's origin: exchange, tape or simulated."""
        event = self.event
        return {
            "market_id": self.market_id,
            "gamma_id": str(self.id),
            "slug": self.slug or None,
            "question": self.question or self.slug or "",
            "description": self.description or None,
            "status": self.status(),
            "exchange": "polymarket",
            "version": (self.version or "v1").lower(),
            "event_id": event.event_id if event else None,
            "event_title": event.title if event else None,
            "category": self.category_name(),
            "series": self.series_name(),
            "tags": self.tag_slugs(),
            "outcomes": self.outcomes,
            "token_ids": self.token_ids,
            "outcome_prices": self.outcome_prices,
            "start_time": instant(self.event_start_time) or instant(self.start_date),
            "end_time": instant(self.end_date) or instant(self.end_date_iso),
            "created_at": instant(self.created_at),
            "closed_at": self.closed_at(),
            "resolved_at": self.resolved_at(),
            "winning_outcome": self.winning_outcome(),
            "volume_usd": _amount(self.volume, self.volume_num),
            "volume_24h_usd": _amount(self.volume24hr),
            "liquidity_usd": _amount(self.liquidity, self.liquidity_num),
            "neg_risk": self.neg_risk is True,
            "order_book": bool(self.token_ids) and self.enable_order_book is not False,
            "tick_size": _amount(self.order_price_min_tick_size),
            "image": self.image or self.icon or None,
            "url": self.url(),
            "source": source,
            "raw": self.raw,
        }

    def event_row(self) -> dict[str, Any] | None:
        """Return its event as a row keyed like `sql.tables.events`."""
        return self.event.row(self.tag_slugs(), self.category_name()) if self.event else None


_market = msgspec.json.Decoder(GammaMarket)
_any = msgspec.json.Decoder()


def _listed(sent: str | list[Any] | None) -> list[Any]:
    """Parse a list sent as JSON in a string, or as a list."""
    if not sent:
        return []
    return _strings.decode(sent) if isinstance(sent, str) else sent


def _amount(*candidates: Number | None) -> int | None:
    """Return the first valid amount; sums over many trades now and then come as a small negative."""
    for candidate in candidates:
        if candidate is None or candidate == "":
            continue
        try:
            return micro(candidate)
        except ValueError:
            continue
    return None
