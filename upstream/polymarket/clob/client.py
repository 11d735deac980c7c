"""CLOB REST client: books, price history, and the markets as the matching engine sees them."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from http import HTTPStatus

import msgspec

from upstream.polymarket.book import Book, WireBook
from upstream.transport.errors import FAULTS, Incomplete, Malformed, NotFound, RefusedObject, Rejected, refused
from upstream.transport.http import Client, Value
from upstream.transport.numbers import Number, of_seconds, price

__all__ = ["Book", "Clob", "ClobMarket", "ClobToken", "MarketsPage", "PricePoint"]

URL = "https://clob.polymarket.com"
LIMITS = {"": 9000, "/book": 1500, "/books": 500, "/prices-history": 1000}
"""Requests in ten seconds, as documented."""
MAX_BOOKS_PER_CALL = 100
END_CURSOR = "LTE="
"""Base64 of -1: the next cursor of the last page."""
MAX_PAGES = 10_000

SOURCE = "clob"


class PricePoint(msgspec.Struct, frozen=True):
    """The price of a token at one time."""

    ts: datetime
    price: int


class ClobToken(msgspec.Struct):
    """A token of a CLOB market."""

    token_id: str
    outcome: str = ""
    price: Number | None = None
    winner: bool | None = None


class ClobMarket(msgspec.Struct):
    """A market as the matching engine sees it; `tokens[].winner` shows its resolution."""

    condition_id: str
    question_id: str | None = None
    question: str | None = None
    market_slug: str | None = None
    active: bool | None = None
    closed: bool | None = None
    archived: bool | None = None
    accepting_orders: bool | None = None
    enable_order_book: bool | None = None
    neg_risk: bool | None = None
    minimum_tick_size: Number | None = None
    minimum_order_size: Number | None = None
    end_date_iso: str | None = None
    game_start_time: str | None = None
    is_50_50_outcome: bool | None = None
    tokens: list[ClobToken] | None = None
    tags: list[str] | None = None

    def winning_token(self) -> str | None:
        """Return the id of the token that pays, once there is exactly one."""
        winners = [token.token_id for token in self.tokens or () if token.winner]
        return winners[0] if len(winners) == 1 else None


class MarketsPage(msgspec.Struct):
    """One page of markets; `next_cursor` is None after the last."""

    items: list[ClobMarket]
    refused: list[RefusedObject]
    next_cursor: str | None


class _SentPage(msgspec.Struct):
    data: list[msgspec.Raw]
    next_cursor: str | None = None


class _SentPoint(msgspec.Struct):
    t: int | float
    p: Number


class _SentHistory(msgspec.Struct):
    history: list[_SentPoint]


_raw = msgspec.json.Decoder(msgspec.Raw)
_raws = msgspec.json.Decoder(list[msgspec.Raw])
_book = msgspec.json.Decoder(WireBook)
_history = msgspec.json.Decoder(_SentHistory)
_page = msgspec.json.Decoder(_SentPage)
_market = msgspec.json.Decoder(ClobMarket)


class Clob:
    """Client of the public CLOB REST endpoints."""

    def __init__(
        self, client: Client, url: str = URL, *, on_refused: Callable[[RefusedObject], None] | None = None
    ) -> None:
        self.client = client
        self.url = url.rstrip("/")
        self._on_refused = on_refused
        client.limits.declare(self.url, LIMITS)

    def books(self, token_ids: Iterable[str]) -> list[Book]:
        """Fetch the books of these tokens; a token without one is absent, and order is not kept."""
        wanted = list(dict.fromkeys(token_ids))
        books: list[Book] = []
        for start in range(0, len(wanted), MAX_BOOKS_PER_CALL):
            some = wanted[start : start + MAX_BOOKS_PER_CALL]
            asked = set(some)
            for piece in self._sent_books(some):
                try:
                    book = _book.decode(piece).book()
                except FAULTS as fault:
                    self._refuse(f"book: {fault}", piece)
                    continue
                if book.asset_id in asked:
                    asked.remove(book.asset_id)
                    books.append(book)
        return books

    def _sent_books(self, token_ids: list[str]) -> list[msgspec.Raw]:
        """Request all books in one call; if one token fails the call for all, request halves."""
        try:
            return self.client.post(f"{self.url}/books", _raws, [{"token_id": token_id} for token_id in token_ids])
        except NotFound:
            return []
        except Rejected as fault:
            if fault.status != HTTPStatus.BAD_REQUEST:
                raise
            if len(token_ids) == 1:
                self._refuse(f"books: {fault}", token_ids[0].encode())
                return []
        middle = len(token_ids) // 2
        return self._sent_books(token_ids[:middle]) + self._sent_books(token_ids[middle:])

    def book(self, token_id: str) -> Book | None:
        """Fetch one book; None when the token has none (not listed yet, or resolved)."""
        url = f"{self.url}/book"
        try:
            sent = self.client.get(url, _raw, {"token_id": token_id})
        except NotFound:
            return None
        try:
            book = _book.decode(sent).book()
        except FAULTS as fault:
            self._refuse(f"book: {fault}", sent)
            raise Malformed(f"{url}: {fault}") from fault
        if book.asset_id != token_id:
            raise Malformed(f"{url}: the book of another token: {book.asset_id}")
        return book

    def prices_history(
        self,
        token_id: str,
        *,
        interval: str | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        fidelity: int | None = None,
    ) -> list[PricePoint]:
        """Fetch a token's prices, oldest first: `interval` (max, 1m for a month, 1w, 1d, 6h, 1h) or from start to end.

        `fidelity` is the step in minutes. Steps are uneven, and the last point is off the grid.
        """
        sent = self.client.get(
            f"{self.url}/prices-history",
            _history,
            {
                "market": token_id,
                "interval": interval,
                "startTs": None if start is None else int(start.timestamp()),
                "endTs": None if end is None else int(end.timestamp()),
                "fidelity": fidelity,
            },
        )
        points: dict[datetime, int] = {}
        for point in sent.history:
            try:
                points[of_seconds(point.t)] = price(point.p)
            except ValueError as fault:
                self._refuse(f"price history of {token_id}: {fault}", msgspec.json.encode(point))
        return [PricePoint(ts, points[ts]) for ts in sorted(points)]

    def markets(self, path: str = "/markets", **filters: Value) -> Iterator[ClobMarket]:
        """Iterate over all markets (or `/sampling-markets`); unreadable ones go to `on_refused`."""
        for page in self.market_pages(None, path=path, **filters):
            for refusal in page.refused:
                self._report(refusal)
            yield from page.items

    def market_pages(
        self, cursor: str | None = None, *, path: str = "/markets", **filters: Value
    ) -> Iterator[MarketsPage]:
        """Iterate over pages from a cursor of an earlier iteration, or from the beginning."""
        seen = {cursor}
        for _ in range(MAX_PAGES):
            sent = self.client.get(f"{self.url}{path}", _page, {**filters, "next_cursor": cursor})
            following = None if sent.next_cursor in (None, "", END_CURSOR) else sent.next_cursor
            page = MarketsPage([], [], following)
            for piece in sent.data:
                try:
                    page.items.append(_market.decode(piece))
                except FAULTS as fault:
                    page.refused.append(refused(SOURCE, f"market: {fault}", bytes(piece)))
            yield page
            if following is None:
                return
            if following in seen:
                raise Incomplete(f"{path}: cursor {following!r:.80} came again")
            if not sent.data:
                raise Incomplete(f"{path}: an empty page, and still a further cursor")
            seen.add(following)
            cursor = following
        raise Incomplete(f"{path}: more than {MAX_PAGES} pages")

    def market(self, condition_id: str) -> ClobMarket | None:
        """Fetch one market by its condition id; None when there is none."""
        try:
            return self.client.get(f"{self.url}/markets/{condition_id}", _market)
        except NotFound:
            return None

    def _refuse(self, reason: str, piece: msgspec.Raw | bytes) -> None:
        self._report(refused(SOURCE, reason, bytes(piece)))

    def _report(self, refusal: RefusedObject) -> None:
        if self._on_refused is not None:
            self._on_refused(refusal)
