"""What trading leaves behind: order books, trades and candles."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from upstream.kalshi.book import KalshiBook, SentLevel, check_absent, side
from upstream.kalshi.fields import COMBO
from upstream.kalshi.fields import ticker as checked_ticker
from upstream.kalshi.rest.candles import KalshiCandle, read_candle
from upstream.kalshi.rest.exchange import Cutoff, SentCutoff
from upstream.kalshi.rest.requests import SOURCE, Requests, asked, same
from upstream.kalshi.trades import KalshiTrade, read_trade
from upstream.transport.errors import FAULTS, Malformed, NotFound, refused
from upstream.transport.pages import CursorPage, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from upstream.transport.http import Value

TRADES_PER_PAGE = 1000
MAX_MARKETS_PER_CALL = 40
"""Documented as 100, but each costs a request's tokens, and the lowest tier may use as many as 40 requests' at once."""
MAX_CANDLES_PER_CALL = 5000
"""Documented as 10,000 over all markets; that of one market is not."""
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


class _Sides(msgspec.Struct):
    """{"yes_dollars":[["0.1200","0.47"],["0.2700","31.54"]],"no_dollars":[["0.7100","25.00"]]}: bids, in any order.

    An empty side is [], null or missing.
    """

    yes_dollars: list[SentLevel] | None = None
    no_dollars: list[SentLevel] | None = None


class _OneBook(msgspec.Struct):
    orderbook_fp: msgspec.Raw


class _Books(msgspec.Struct):
    orderbooks: list[msgspec.Raw]


class _TickerBook(msgspec.Struct):
    ticker: str
    orderbook_fp: msgspec.Raw


class _TradesPage(msgspec.Struct):
    trades: list[msgspec.Raw]
    cursor: str | None = None


class _Candles(msgspec.Struct):
    candlesticks: list[msgspec.Raw]
    ticker: str | None = None


class _MarketCandles(msgspec.Struct):
    market_ticker: str
    candlesticks: list[msgspec.Raw]


class _CandlesOfMarkets(msgspec.Struct):
    markets: list[_MarketCandles]


_sides = msgspec.json.Decoder(_Sides)
_one_book = msgspec.json.Decoder(_OneBook)
_books = msgspec.json.Decoder(_Books)
_ticker_book = msgspec.json.Decoder(_TickerBook)
_trades_page = msgspec.json.Decoder(_TradesPage)
_candles = msgspec.json.Decoder(_Candles)
_candles_of_markets = msgspec.json.Decoder(_CandlesOfMarkets)
_cutoff = msgspec.json.Decoder(SentCutoff)


class TapeClient(Requests):
    """Reads books, trades and candles, live and historical."""

    def cutoff(self) -> Cutoff:
        """Fetch when live data begins; it moves on."""
        try:
            return self._get("/historical/cutoff", _cutoff).cutoff()
        except ValueError as fault:
            raise Malformed(f"/historical/cutoff: {fault}") from fault

    def book(self, ticker: str, depth: int = 0) -> KalshiBook | None:
        """Fetch one book, up to 15 s old, with the best `depth` levels of each side or all; None when not found."""
        path = f"/markets/{asked(ticker)}/orderbook"
        try:
            sent = self._get(path, _one_book, {"depth": depth})
        except NotFound:
            return None
        try:
            return _read_book(ticker, sent.orderbook_fp)
        except FAULTS as fault:
            self._refuse(f"book of {ticker}: {fault}", sent.orderbook_fp)
            raise Malformed(f"{path}: {fault}") from fault

    def books(self, tickers: Iterable[str]) -> list[KalshiBook]:
        """Fetch the books of these markets, up to 15 s old; one without is absent, and order is not kept."""
        books: list[KalshiBook] = []
        for some in _portions(map(asked, tickers), MAX_MARKETS_PER_CALL):
            left = set(some)
            sent = self._get("/markets/orderbooks", _books, {"tickers": some}, tokens=len(some))
            for piece in sent.orderbooks:
                try:
                    each = _ticker_book.decode(piece)
                    book = _read_book(checked_ticker(each.ticker), each.orderbook_fp)
                except FAULTS as fault:
                    self._refuse(f"book: {fault}", piece)
                    continue
                if book.ticker in left:
                    left.remove(book.ticker)
                    books.append(book)
        return books

    def trades(
        self, ticker: str | None = None, start: datetime | None = None, end: datetime | None = None
    ) -> Iterator[KalshiTrade]:
        """Iterate over the trades of a market (None: of all but combos), newest first, from start to end inclusive.

        Those made before the cutoff are in historical data: both are asked, and what both have comes once.
        """
        cutoff = self.cutoff().trades
        until = cutoff + DAY  # it may move on meanwhile
        both: set[str] = set()
        for trade in self._trades("/markets/trades", ticker, start, end):
            if trade.ts_ms <= _ms(until):
                both.add(trade.trade_id)
            yield trade
        if start is None or start < until:
            for trade in self._trades("/historical/trades", ticker, start, until if end is None else min(end, until)):
                if trade.trade_id not in both:
                    yield trade

    def _trades(
        self, path: str, ticker: str | None, start: datetime | None, end: datetime | None
    ) -> Iterator[KalshiTrade]:
        # Whether the exchange's times include their ends is not documented: a second more is asked for.
        params: dict[str, Value] = {
            "limit": TRADES_PER_PAGE,
            "ticker": None if ticker is None else asked(ticker),
            "min_ts": None if start is None else int((start - SECOND).timestamp()),
            "max_ts": None if end is None else int((end + 2 * SECOND).timestamp()),
        }

        def page(after: str | None) -> CursorPage[KalshiTrade]:
            sent = self._get(path, _trades_page, {**params, "cursor": after})
            read: CursorPage[KalshiTrade] = CursorPage([], [], 0, sent.cursor or None)
            for piece in sent.trades:
                try:
                    trade = read_trade(piece)
                    same(trade.ticker, ticker or trade.ticker)
                except FAULTS as fault:
                    read.refused.append(refused(SOURCE, f"trade: {fault}", bytes(piece)))
                    continue
                if trade.ticker.startswith(COMBO) and ticker is None:
                    read.skipped += 1
                else:
                    read.items.append(trade)
            return read

        for each in walk(page, None, lambda trade: trade.trade_id):
            self._report(each.refused)
            for trade in each.items:
                if (start is None or trade.ts_ms >= _ms(start)) and (end is None or trade.ts_ms <= _ms(end)):
                    yield trade

    def candles(
        self, series_ticker: str, ticker: str, start: datetime, end: datetime, minutes: int = 1
    ) -> Iterator[KalshiCandle]:
        """Iterate over a market's candles of 1, 60 or 1440 minutes, oldest first; periods without trades are left out.

        A market that settled before the cutoff has them in historical data.
        """
        paths = [
            f"/series/{asked(series_ticker)}/markets/{asked(ticker)}/candlesticks",
            f"/historical/markets/{ticker}/candlesticks",
        ]

        def read(params: dict[str, Value]) -> Iterator[KalshiCandle]:
            try:
                sent = self._get(paths[0], _candles, params)
            except NotFound:
                if len(paths) == 1:
                    raise
                del paths[0]
                sent = self._get(paths[0], _candles, params)
            return self._read_candles(ticker, sent.candlesticks, minutes)

        yield from _once(map(read, _spans(start, end, minutes, MAX_CANDLES_PER_CALL)))

    def candles_of_markets(
        self, tickers: Iterable[str], start: datetime, end: datetime, minutes: int = 1
    ) -> Iterator[KalshiCandle]:
        """Iterate over several live markets' candles; those of one market are oldest first."""
        for some in _portions(map(asked, tickers), MAX_MARKETS_PER_CALL):
            spans = _spans(start, end, minutes, MAX_CANDLES_PER_CALL // len(some))
            yield from _once(self._candles_of(some, minutes, params) for params in spans)

    def _candles_of(self, tickers: list[str], minutes: int, params: dict[str, Value]) -> Iterator[KalshiCandle]:
        of_all: dict[str, Value] = {"market_tickers": ",".join(tickers), **params}
        sent = self._get("/markets/candlesticks", _candles_of_markets, of_all, tokens=len(tickers))
        for market in sent.markets:
            if market.market_ticker in tickers:
                yield from self._read_candles(market.market_ticker, market.candlesticks, minutes)

    def _read_candles(self, ticker: str, pieces: list[msgspec.Raw], minutes: int) -> Iterator[KalshiCandle]:
        for piece in pieces:
            try:
                candle = read_candle(piece, ticker, timedelta(minutes=minutes))
            except FAULTS as fault:
                self._refuse(f"candle of {ticker}: {fault}", piece)
                continue
            if candle is not None:
                yield candle


def _read_book(ticker: str, text: msgspec.Raw) -> KalshiBook:
    sides = _sides.decode(text)
    if sides.yes_dollars is None or sides.no_dollars is None:
        check_absent(text, ("yes_dollars", "no_dollars"))
    return KalshiBook(ticker, side(sides.yes_dollars), side(sides.no_dollars))


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _portions(items: Iterable[str], most: int) -> Iterator[list[str]]:
    wanted = list(dict.fromkeys(items))
    for start in range(0, len(wanted), most):
        yield wanted[start : start + most]


def _once(requests: Iterable[Iterable[KalshiCandle]]) -> Iterator[KalshiCandle]:
    """Yield each request's candles without those of the request before it.

    Whether the exchange's spans include their ends is not documented: one that ends between two may come twice.
    """
    before: set[tuple[str, datetime]] = set()
    for candles in requests:
        listed = [*candles]
        yield from (each for each in listed if (each.ticker, each.start) not in before)
        before = {(each.ticker, each.start) for each in listed}


def _spans(start: datetime, end: datetime, minutes: int, most: int) -> Iterator[dict[str, Value]]:
    """Yield the parameters of the requests for one span of time, each of at most so many candles."""
    first, last = int(start.timestamp()), int(end.timestamp())
    while first < last:
        until = min(last, first + 60 * minutes * most)
        yield {"start_ts": first, "end_ts": until, "period_interval": minutes}
        first = until
