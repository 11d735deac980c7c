"""Events and series: the question that markets share, and the template that events recur by."""

from __future__ import annotations

from typing import Any, Self

import msgspec

from upstream.kalshi.fields import COMBO, ticker
from upstream.transport.catalogue import slugged
from upstream.transport.numbers import Number

SITE = "https://kalshi.com"


class SettlementSource(msgspec.Struct, frozen=True):
    """Where the exchange looks for what has happened."""

    name: str | None = None
    url: str | None = None


class KalshiSeries(msgspec.Struct, kw_only=True):
    """{"ticker":"KXNBAGAME","title":"NBA Game","category":"Sports","categories":["Sports"],"tags":["Basketball"],
    "frequency":"custom","fee_multiplier":1,"exchange_index":0,…}
    """  # noqa: D205

    ticker: str
    title: str | None = None
    category: str | None = None
    categories: list[str] | None = None
    tags: list[str] | None = None
    frequency: str | None = None
    settlement_sources: list[SettlementSource] | None = None
    fee_type: str | None = None
    fee_multiplier: Number | None = None
    last_updated_ts: str | None = None
    exchange_index: int | None = None

    @classmethod
    def read(cls, text: bytes | msgspec.Raw) -> Self:
        """Decode one object; raises `upstream.transport.errors.FAULTS`."""
        series = _series.decode(text)
        ticker(series.ticker)
        return series  # type: ignore[return-value]

    def category_name(self) -> str | None:
        """Return its category as a slug."""
        return slugged(self.category or "") or None

    def tag_slugs(self) -> list[str]:
        """Return tags and categories as slugs without repeats, in order of first appearance."""
        slugs = (slugged(text) for text in [*(self.tags or ()), *(self.categories or ())])
        return list(dict.fromkeys(slug for slug in slugs if slug))


class KalshiEvent(msgspec.Struct, kw_only=True):
    """{"event_ticker":"KXELONMARS-99","series_ticker":"KXELONMARS","title":"Will Elon Musk visit Mars …?",
    "sub_title":"Before 2099","category":"World","mutually_exclusive":false,"exchange_index":0,
    "last_updated_ts":"2026-08-28T21:35:33.691337Z","settlement_sources":[{"name":"Reuters","url":"https://www.reuters.com"}]}

    It has no state: the exchange's filters by status go by its markets.
    """  # noqa: D205

    event_ticker: str
    series_ticker: str
    title: str | None = None
    sub_title: str | None = None
    category: str | None = None
    mutually_exclusive: bool | None = None
    collateral_return_type: str | None = None
    settlement_sources: list[SettlementSource] | None = None
    strike_date: str | None = None
    strike_period: str | None = None
    fee_type_override: str | None = None
    fee_multiplier_override: Number | None = None
    last_updated_ts: str | None = None
    exchange_index: int | None = None
    markets: list[msgspec.Raw] | None = None
    """As sent, if asked for: `upstream.kalshi.rest.markets.read_markets` parses them."""

    @classmethod
    def read(cls, text: bytes | msgspec.Raw) -> Self:
        """Decode one object; raises `upstream.transport.errors.FAULTS`."""
        event = _event.decode(text)
        ticker(event.event_ticker)
        ticker(event.series_ticker)
        return event  # type: ignore[return-value]

    @property
    def is_combo(self) -> bool:
        """Whether its markets are combinations of others, made on request."""
        return self.event_ticker.startswith(COMBO)

    def row(self, series: KalshiSeries | None = None) -> dict[str, Any]:
        """Return a row keyed like `sql.tables.events`; category and tags are its series'."""
        return {
            "event_id": self.event_ticker,
            "slug": self.event_ticker.lower(),
            "title": self.title or None,
            "category": (series.category_name() if series else None) or slugged(self.category or "") or None,
            "series": self.series_ticker,
            "tags": series.tag_slugs() if series else [],
            "start_time": None,
            "end_time": None,
            "closed": False,
            "neg_risk": self.mutually_exclusive is True,
            "image": None,
        }


_series = msgspec.json.Decoder(KalshiSeries)
_event = msgspec.json.Decoder(KalshiEvent)
