"""Markets, as the exchange sends them and as rows for `sql.tables`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import msgspec

from upstream.kalshi.fields import COMBO, OUTCOMES, optional_price, optional_size, quote, ticker, token_id
from upstream.kalshi.rest.events import SITE
from upstream.transport.errors import FAULTS, RefusedObject, refused
from upstream.transport.numbers import MICRO, Number, instant

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from upstream.kalshi.rest.events import KalshiEvent, KalshiSeries
    from upstream.transport.catalogue import Status

SOURCE = "kalshi"
OPEN = ("initialized", "active", "inactive")
ENDED = ("closed", "determined", "disputed", "amended")
FINAL = "finalized"


class PriceRange(msgspec.Struct, frozen=True):
    """{"start":"0.0000","end":"1.0000","step":"0.0100"}"""

    start: Number
    end: Number
    step: Number

    def micro(self) -> tuple[int, int, int]:
        """Return start, end and step in micro-units; ValueError if they make no range."""
        start, end, step = (optional_price(each) for each in (self.start, self.end, self.step))
        if start is None or end is None or not step or start > end:
            raise ValueError(f"not a range of prices: {self.start!r:.20} to {self.end!r:.20} by {self.step!r:.20}")
        return start, end, step


class KalshiMarket(msgspec.Struct, kw_only=True):
    """{"ticker":"KXFED-27APR-T4.25","event_ticker":"KXFED-27APR","market_type":"binary","status":"active","result":"",
    "title":"Will the upper bound … above 4.25% …?","yes_sub_title":"Above 4.25%","open_time":"2025-10-13T14:00:00Z",
    "close_time":"2027-04-28T17:55:00Z","yes_bid_dollars":"0.2700","yes_bid_size_fp":"31.54","yes_ask_dollars":"0.2800",
    "yes_ask_size_fp":"20.00","last_price_dollars":"0.2800","volume_fp":"10155.43","open_interest_fp":"2020.47",
    "price_ranges":[{"start":"0.0000","end":"1.0000","step":"0.0100"}],"settlement_timer_seconds":300,…}

    Unknown fields are in `raw` only. Volume and open interest count contracts, fractions of them included.
    """  # noqa: D205

    ticker: str
    event_ticker: str
    state: str = msgspec.field(name="status")
    market_type: str | None = None
    result: str | None = None
    title: str | None = None
    subtitle: str | None = None
    yes_sub_title: str | None = None
    no_sub_title: str | None = None
    rules_primary: str | None = None
    rules_secondary: str | None = None
    created_time: str | None = None
    updated_time: str | None = None
    open_time: str | None = None
    close_time: str | None = None
    expected_expiration_time: str | None = None
    latest_expiration_time: str | None = None
    settlement_ts: str | None = None
    settlement_timer_seconds: int | None = None
    settlement_value_dollars: Number | None = None
    notional_value_dollars: Number | None = None
    yes_bid_dollars: Number | None = None
    yes_bid_size_fp: Number | None = None
    yes_ask_dollars: Number | None = None
    yes_ask_size_fp: Number | None = None
    last_price_dollars: Number | None = None
    volume_fp: Number | None = None
    volume_24h_fp: Number | None = None
    open_interest_fp: Number | None = None
    can_close_early: bool | None = None
    price_level_structure: str | None = None
    price_ranges: list[PriceRange] | None = None
    strike_type: str | None = None
    floor_strike: Number | None = None
    cap_strike: Number | None = None
    mve_collection_ticker: str | None = None
    is_provisional: bool | None = None
    exchange_index: int | None = None

    # Derived from the above. The prefix keeps this name from clashing with one the exchange may add.
    raw: str = msgspec.field(default="", name="presage:raw")
    """The object's JSON text as sent."""

    @classmethod
    def read(cls, text: bytes) -> Self:
        """Decode one object; ValueError or msgspec.MsgspecError when it is inconsistent."""
        market = _market.decode(text)
        _any.decode(text)  # unknown fields are stored too: a number beyond any range or bad UTF-8 would fail there
        market.raw = text.decode()
        market.check()
        return market  # type: ignore[return-value]

    def check(self) -> None:
        """Refuse what would be stored wrongly: invalid tickers and numbers, unknown states, other payouts than 1."""
        ticker(self.ticker)
        ticker(self.event_ticker)
        if self.state not in (*OPEN, *ENDED, FINAL):
            raise ValueError(f"unknown status: {self.state!r:.80}")
        if optional_size(self.notional_value_dollars) not in (None, MICRO):
            raise ValueError(f"a contract of {self.notional_value_dollars!r:.40} dollars")
        self.quotes()
        self.outcome_prices()
        self.tick_size()
        for amount in (self.volume_fp, self.volume_24h_fp, self.open_interest_fp):
            optional_size(amount)

    @property
    def is_combo(self) -> bool:
        """Whether it is a combination of other markets, made on request."""
        return self.ticker.startswith(COMBO) or bool(self.mve_collection_ticker)

    @property
    def paused(self) -> bool:
        """Whether trading is paused; resting orders are cancelled when it goes on."""
        return self.state == "inactive"

    def status(self, now: datetime) -> Status:
        """ACTIVE: open for trade, paused or not open yet; RESOLVED: paid, which is final; CLOSED: between.

        The exchange says nothing when a closing time passes, and may list the market as active for a while.
        """
        if self.state == FINAL:
            return "RESOLVED"
        close = instant(self.close_time)
        return "CLOSED" if self.state in ENDED or (close is not None and now > close) else "ACTIVE"

    def payout(self) -> int | None:
        """Return what a YES contract paid; None before the market is final, and for a void one."""
        if self.state != FINAL or self.result not in {"yes", "no", "scalar"}:
            return None
        value = optional_price(self.settlement_value_dollars)  # where it disagrees with the result, it is right
        return {"yes": MICRO, "no": 0}.get(self.result) if value is None else value

    def winning_outcome(self) -> int | None:
        """Return the winning outcome's index; None when unresolved, void, or when the payout is shared."""
        payout = None if self.result == "scalar" else self.payout()
        return {MICRO: 0, 0: 1}.get(payout) if payout is not None else None

    def outcome_prices(self) -> list[int]:
        """Return payouts once final, before the last prices; empty when there are none."""
        price = self.payout() if self.state == FINAL else optional_price(self.last_price_dollars) or None
        return [] if price is None else [price, MICRO - price]

    def quotes(self) -> tuple[int | None, int | None]:
        """Return the best bid and ask for YES; None for an empty side."""
        return (
            quote(self.yes_bid_dollars, self.yes_bid_size_fp, 0),
            quote(self.yes_ask_dollars, self.yes_ask_size_fp, MICRO),
        )

    def tick_size(self) -> int | None:
        """Return the step of prices about the last one: steps may be smaller near 0 and 1."""
        bands = [band.micro() for band in self.price_ranges or ()]
        last = optional_price(self.last_price_dollars) or 0
        return next((step for start, end, step in bands if start <= last <= end), bands[0][2] if bands else None)

    def question(self, event: KalshiEvent | None = None) -> str:
        """Return its title, else its event's with its own part, else its ticker."""
        of_event = ": ".join(filter(None, (event.title, self.yes_sub_title))) if event else ""
        return self.title or of_event or self.ticker

    def description(self) -> str | None:
        """Return the rules, and what Yes means where that is said beside them: all that decides is in it."""
        strikes = " ".join(
            str(each) for each in (self.strike_type, self.floor_strike, self.cap_strike) if each not in {None, ""}
        )
        meaning = " ".join(filter(None, (self.yes_sub_title, strikes and f"({strikes})")))
        return (
            "\n\n".join(filter(None, (self.rules_primary, self.rules_secondary, meaning and f"Yes: {meaning}"))) or None
        )

    def row(
        self,
        now: datetime,
        event: KalshiEvent | None = None,
        series: KalshiSeries | None = None,
        source: str = "exchange",
    ) -> dict[str, Any]:
        """Return a row keyed like `sql.tables.markets`; `source` is the data's origin: exchange or simulated.

        Amounts in USD are not among the exchange's figures, and category, tags and series are in the event's series.
        """
        status = self.status(now)
        close = instant(self.close_time)
        of_event = event.row(series) if event else {}
        return {
            "market_id": self.ticker,
            "gamma_id": None,
            "slug": self.ticker.lower(),
            "question": self.question(event),
            "description": self.description(),
            "status": status,
            "exchange": "kalshi",
            "version": "v1",
            "event_id": self.event_ticker,
            "event_title": of_event.get("title"),
            "category": of_event.get("category"),
            "series": of_event.get("series"),
            "tags": of_event.get("tags", []),
            "outcomes": ["Yes", "No"],
            "token_ids": [token_id(self.ticker, outcome) for outcome in range(len(OUTCOMES))],
            "outcome_prices": self.outcome_prices(),
            "start_time": instant(self.open_time),
            "end_time": close,
            "created_at": instant(self.created_time),
            "closed_at": close if status != "ACTIVE" and close is not None and close <= now else None,
            "resolved_at": instant(self.settlement_ts) if status == "RESOLVED" else None,
            "winning_outcome": self.winning_outcome(),
            "volume_usd": None,
            "volume_24h_usd": None,
            "liquidity_usd": None,
            "neg_risk": of_event.get("neg_risk"),
            "order_book": True,
            "tick_size": self.tick_size(),
            "image": None,
            "url": f"{SITE}/markets/{event.series_ticker}" if event else None,
            "source": source,
            "raw": self.raw,
        }


_market = msgspec.json.Decoder(KalshiMarket)
_any = msgspec.json.Decoder()


def read_markets(pieces: Iterable[msgspec.Raw]) -> tuple[list[KalshiMarket], list[RefusedObject], int]:
    """Parse markets: the readable ones, the refused ones, and how many combos were left out."""
    markets: list[KalshiMarket] = []
    refusals: list[RefusedObject] = []
    combos = 0
    for piece in pieces:
        try:
            market = KalshiMarket.read(bytes(piece))
        except FAULTS as fault:
            refusals.append(refused(SOURCE, f"market: {fault}", bytes(piece)))
            continue
        if market.is_combo:
            combos += 1
        else:
            markets.append(market)
    return markets, refusals, combos
