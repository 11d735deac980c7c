"""Recorded series, events and markets, listed with their times shifted to the play's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

from upstream.sandbox.kalshi.exchange.grid import GRIDS, Band, Grid
from upstream.sandbox.kalshi.exchange.listings import KalshiEvent, KalshiMarket, KalshiSeries, Status
from upstream.sandbox.tape.files import moment, price, size

if TYPE_CHECKING:
    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.tape.recording import KalshiTape

TICKER = re.compile(r"[A-Z0-9][A-Z0-9.-]{0,99}")
MAX_TEXT = 10_000
MAX_BANDS = 100
MOVING = ("_dollars", "_fp", "_time", "_ts")  # ends of fields that are not kept as they were recorded
OWN = {"ticker", "event_ticker", "market_type", "status", "result", "price_ranges", "price_level_structure"}


class Lister:
    """Puts what a tape describes on the exchange; times are moved by `shift_ms`."""

    def __init__(self, exchange: KalshiExchange, shift_ms: int) -> None:
        self._exchange, self._shift_ms = exchange, shift_ms

    def list_all(self, tape: KalshiTape) -> None:
        """List all of a tape's series, events and markets; those that cannot be are counted with the reason."""
        for rows, add in ((tape.series, self.series), (tape.events, self.event), (tape.markets, self.market)):
            for file, row in rows:
                try:
                    added = add(row)
                except ValueError as error:
                    file.leave(str(error))
                    continue
                if added:
                    file.used += 1
                else:
                    file.leave("listed already by another row")

    def series(self, row: dict[str, Any]) -> bool:
        """List a series; False if it is known."""
        ticker = ticker_of(row.get("ticker"))
        if ticker in self._exchange.series:
            return False
        given = row.get("tags")
        tags = [tag for tag in given if isinstance(tag, str)] if isinstance(given, list) else []
        series = KalshiSeries(ticker, _text(row, "title"), _text(row, "category"), tags, _shard(row))
        series.whole = {name: value for name, value in row.items() if name not in ("ticker", "exchange_index")}
        self._exchange.add_series(series)
        return True

    def event(self, row: dict[str, Any]) -> bool:
        """List an event; False if it is known."""
        ticker = ticker_of(row.get("event_ticker"))
        if ticker in self._exchange.events:
            return False
        event = KalshiEvent(
            ticker,
            self._series_of(row.get("series_ticker"), ticker, row),
            _text(row, "title"),
            _text(row, "sub_title") or _text(row, "subtitle"),
            row.get("mutually_exclusive") is True,
            self._exchange.now_ms,
        )
        kept = ("collateral_return_type", "settlement_sources", "strike_period", "product_metadata", "category")
        event.whole = {name: row[name] for name in kept if name in row}
        self._exchange.add_event(event)
        return True

    def market(self, row: dict[str, Any]) -> bool:
        """List a market; False if it is known. An event that nothing describes is made from its ticker."""
        exchange, ticker = self._exchange, ticker_of(row.get("ticker"))
        if ticker in exchange.markets:
            return False
        event_ticker = ticker_of(row.get("event_ticker"))
        if event_ticker not in exchange.events:
            self.event({"event_ticker": event_ticker, "exchange_index": row.get("exchange_index")})
        created, opens, closes = (self._time(row, name) for name in ("created_time", "open_time", "close_time"))
        status = row.get("status", "active")
        if status not in get_args(Status):
            raise ValueError("malformed status")
        market = KalshiMarket(
            ticker,
            exchange.events[event_ticker],
            _text(row, "title"),
            _text(row, "yes_sub_title"),
            created or opens,
            opens,
            closes,
            self._time(row, "expected_expiration_time") or closes,
            grid=grid_of(row),
            kind=_text(row, "market_type") or "binary",
            status=status,
            result=_text(row, "result"),
            settled_ms=self._time(row, "settlement_ts"),
            extra={name: value for name, value in row.items() if name not in OWN and not name.endswith(MOVING)},
        )
        if row.get("settlement_value_dollars"):
            market.settlement = price(row["settlement_value_dollars"])
        market.last_price = price(row.get("last_price_dollars") or 0)
        market.volume, market.open_interest = (size(row.get(name) or 0) for name in ("volume_fp", "open_interest_fp"))
        exchange.add_market(market)
        return True

    def _series_of(self, given: Any, event_ticker: str, row: dict[str, Any]) -> KalshiSeries:
        ticker = ticker_of(given) if given else event_ticker.partition("-")[0]
        known = self._exchange.series.get(ticker)
        return known or KalshiSeries(ticker, ticker, _text(row, "category"), [], _shard(row))

    def _time(self, row: dict[str, Any], name: str) -> int:
        """Return a time as it is played; 0 if it is missing or Kalshi's zero."""
        given = row.get(name)
        if not given or str(given).startswith("0001-"):
            return 0
        return moment(given) + self._shift_ms


def ticker_of(value: Any) -> str:
    """Return a ticker."""
    if not isinstance(value, str) or not TICKER.fullmatch(value):
        raise ValueError("malformed ticker")
    return value


def grid_of(row: dict[str, Any]) -> Grid:
    """Return a market's grid: its bands where they are recorded, else those of its structure."""
    structure, ranges = _text(row, "price_level_structure"), row.get("price_ranges")
    if not isinstance(ranges, list) or not ranges:
        return GRIDS.get(structure, GRIDS["linear_cent"])
    if len(ranges) > MAX_BANDS or not all(isinstance(one, dict) for one in ranges):
        raise ValueError("malformed price_ranges")
    bands = [Band(*(price(one.get(name)) for name in ("start", "end", "step"))) for one in ranges]
    if any(band.step <= 0 or band.start >= band.end for band in bands):
        raise ValueError("malformed price_ranges")
    return Grid(structure, bands)


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name) or ""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError(f"malformed {name}")
    return value


def _shard(row: dict[str, Any]) -> int:
    value = row.get("exchange_index") or 0
    if type(value) is not int or not 0 <= value < 1_000:
        raise ValueError("malformed exchange_index")
    return value
