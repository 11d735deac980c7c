"""Data API client: trades, wallets' positions and activity. Paginated by cursor (v2) or by offset up to a cap (v1)."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Literal, TypeVar

import msgspec

from upstream.polymarket.data_api.positions import (
    DataApiActivity,
    DataApiClosedPosition,
    DataApiPosition,
    Holder,
    read_activity,
    read_closed_position,
    read_holders,
    read_position,
)
from upstream.polymarket.data_api.trades import DataApiTrade, number_repeats, read_v1, read_v2
from upstream.transport.errors import FAULTS, Incomplete, RefusedObject, refused
from upstream.transport.http import Client, Value

__all__ = [
    "DataApi",
    "DataApiActivity",
    "DataApiClosedPosition",
    "DataApiPosition",
    "DataApiTrade",
    "Holder",
    "number_repeats",
]

URL = "https://data-api.polymarket.com"
LIMITS = {"": 1000, "/trades": 200, "/v2/trades": 200, "/positions": 150, "/closed-positions": 150}
"""Requests in ten seconds, as documented."""
TRADES_PER_PAGE = 1000
TRADES_OFFSET_CAP = 3000
"""v1: documented as 10,000, but in 2026 the exchange was seen to stop at 3,000."""
ROWS_PER_PAGE = 500
ROWS_OFFSET_CAP = 10_000
MAX_CONDITIONS_PER_CALL = 20
MAX_HOLDERS = 20
MAX_PAGES = 100_000

SOURCE = "data_api"

T = TypeVar("T")


class _Pagination(msgspec.Struct):
    has_more: bool = False
    next_cursor: str | None = None


class _SentPage(msgspec.Struct):
    data: list[msgspec.Raw]
    pagination: _Pagination | None = None


_page = msgspec.json.Decoder(_SentPage)
_rows = msgspec.json.Decoder(list[msgspec.Raw])


class DataApi:
    """Trades and wallets. Unreadable rows go to `on_refused`; pagination that cannot finish raises Incomplete."""

    def __init__(
        self, client: Client, url: str = URL, *, on_refused: Callable[[RefusedObject], None] | None = None
    ) -> None:
        self.client = client
        self.url = url.rstrip("/")
        self._on_refused = on_refused
        client.limits.declare(self.url, LIMITS)

    # --- Trades -------------------------------------------------------------------------------------------------------

    def trades(
        self,
        condition_ids: Iterable[str] = (),
        start: datetime | None = None,
        end: datetime | None = None,
        *,
        user: str | None = None,
        taker_only: bool = True,
    ) -> Iterator[DataApiTrade]:
        """Iterate over the trades of these markets (none: all), newest first in each call, from start to end inclusive.

        With `taker_only` there is one row per match, so that volumes add up.
        """
        wanted = list(dict.fromkeys(condition_ids))
        if not wanted:
            yield from self._trades(None, start, end, user=user, taker_only=taker_only)
        for first in range(0, len(wanted), MAX_CONDITIONS_PER_CALL):
            some = ",".join(wanted[first : first + MAX_CONDITIONS_PER_CALL])
            yield from self._trades(some, start, end, user=user, taker_only=taker_only)

    def _trades(
        self,
        conditions: str | None,
        start: datetime | None,
        end: datetime | None,
        *,
        user: str | None,
        taker_only: bool,
    ) -> Iterator[DataApiTrade]:
        pages = self._cursor_pages(
            "/v2/trades",
            {
                "condition_id": conditions,
                "user": user,
                "taker_only": taker_only,
                "start": None if start is None else int(start.timestamp()),
                "end": None if end is None else int(end.timestamp()),
                "limit": TRADES_PER_PAGE,
            },
        )
        for trade in number_repeats(trade for page in pages for trade in self._read(page, read_v2, "trade")):
            if (start is None or trade.ts >= start.replace(microsecond=0)) and (end is None or trade.ts <= end):
                yield trade

    def trades_v1(
        self,
        condition_ids: Iterable[str] = (),
        *,
        user: str | None = None,
        taker_only: bool = True,
        cap: int = TRADES_OFFSET_CAP,
    ) -> Iterator[DataApiTrade]:
        """Iterate over the newest trades of these markets by offset; Incomplete beyond the cap."""
        params: dict[str, Value] = {
            "market": ",".join(dict.fromkeys(condition_ids)) or None,
            "user": user,
            "takerOnly": taker_only,
        }
        pages = self._offset_pages("/trades", params, TRADES_PER_PAGE, cap)
        return number_repeats(trade for page in pages for trade in self._read(page, read_v1, "trade"))

    # --- Wallets ------------------------------------------------------------------------------------------------------

    def positions(self, user: str, **filters: Value) -> Iterator[DataApiPosition]:
        """Iterate over a wallet's open positions."""
        pages = self._offset_pages("/positions", {**filters, "user": user}, ROWS_PER_PAGE, ROWS_OFFSET_CAP)
        return (position for page in pages for position in self._read(page, read_position, "position"))

    def closed_positions(self, user: str, **filters: Value) -> Iterator[DataApiClosedPosition]:
        """Iterate over a wallet's closed positions."""
        pages = self._offset_pages("/closed-positions", {**filters, "user": user}, ROWS_PER_PAGE, ROWS_OFFSET_CAP)
        return (position for page in pages for position in self._read(page, read_closed_position, "closed position"))

    def holders(self, condition_id: str, most: int = MAX_HOLDERS) -> list[Holder]:
        """Return the largest holders of each outcome of a market; the exchange shows at most twenty of each."""
        sent = self.client.get(f"{self.url}/holders", _rows, {"market": condition_id, "limit": most})
        return [
            holder
            for of_token in self._read([bytes(piece) for piece in sent], read_holders, "holders")
            for holder in of_token
        ]

    def activity(
        self,
        user: str,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        order: Literal["ASC", "DESC"] = "DESC",
        **filters: Value,
    ) -> Iterator[DataApiActivity]:
        """Iterate over a wallet's activity, newest first."""
        params: dict[str, Value] = {
            **filters,
            "user": user,
            "start": None if start is None else int(start.timestamp()),
            "end": None if end is None else int(end.timestamp()),
            "sortBy": "TIMESTAMP",
            "sortDirection": order,
        }
        pages = self._offset_pages("/activity", params, ROWS_PER_PAGE, ROWS_OFFSET_CAP)
        return (activity for page in pages for activity in self._read(page, read_activity, "activity"))

    # --- Pages --------------------------------------------------------------------------------------------------------

    def _cursor_pages(self, path: str, params: dict[str, Value]) -> Iterator[list[bytes]]:
        cursor: str | None = None
        cursors: set[str | None] = {None}
        pages: set[int] = set()
        for _ in range(MAX_PAGES):
            sent = self.client.get(f"{self.url}{path}", _page, {**params, "cursor": cursor})
            rows = [bytes(piece) for piece in sent.data]
            _once(pages, rows, f"{path} after cursor {cursor!r:.80}")
            yield rows
            following = sent.pagination.next_cursor if sent.pagination else None
            if not following:
                return
            if following in cursors:
                raise Incomplete(f"{path}: cursor {following!r:.80} came again")
            if not rows:
                raise Incomplete(f"{path}: an empty page, and still a further cursor")
            cursors.add(following)
            cursor = following
        raise Incomplete(f"{path}: more than {MAX_PAGES} pages")

    def _offset_pages(self, path: str, params: dict[str, Value], size: int, cap: int) -> Iterator[list[bytes]]:
        """Yield pages by offset, without rows that shifted from one page to the next as new rows arrived."""
        before: list[bytes] = []
        pages: set[int] = set()
        offset = fullest = 0
        while offset <= cap:
            sent = self.client.get(f"{self.url}{path}", _rows, {**params, "limit": size, "offset": offset})
            rows = [bytes(piece) for piece in sent]
            known = _overlap(before, rows)
            # A short page proves nothing, as the exchange may return fewer rows than requested. The end is where
            # no rows come, or only the last rows again, which new ones have pushed down meanwhile.
            fullest = max(fullest, len(rows))
            if not rows or (known == len(rows) < fullest):
                return
            _once(pages, rows, f"{path} at offset {offset}")
            yield rows[known:]
            before = (before + rows[known:])[-2 * size :]
            offset += len(rows)
        raise Incomplete(f"{path}: more rows than the offset cap of {cap} lets one see")

    def _read(self, page: list[bytes], reader: Callable[[bytes], T], what: str) -> list[T]:
        rows: list[T] = []
        for piece in page:
            try:
                rows.append(reader(piece))
            except FAULTS as fault:
                if self._on_refused is not None:
                    self._on_refused(refused(SOURCE, f"{what}: {fault}", piece))
        return rows


def _once(pages: set[int], rows: list[bytes], where: str) -> None:
    """Raise Incomplete for a repeated page: past its cap the exchange serves an earlier page again, whole."""
    page = hash(tuple(rows))
    if rows and page in pages:
        raise Incomplete(f"{where}: a page that came before")
    pages.add(page)


def _overlap(before: list[bytes], rows: list[bytes]) -> int:
    """Return how many rows at the start of a page were the end of the previous one."""
    for length in range(min(len(before), len(rows)), 0, -1):
        if before[-length] == rows[0] and before[-length:] == rows[:length]:
            return length
    return 0
