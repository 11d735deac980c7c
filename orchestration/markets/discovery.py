"""Discovery of an exchange's catalogue: open markets, new and ended ones, and, once, its whole history."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from config.exchanges import EXCHANGES
from orchestration.markets.catalogue import StoreResult, store
from sql.queries import catalogue as queries
from sql.queries import feed
from upstream.transport.errors import Rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import psycopg

    from config.settings import Settings
    from upstream.transport.errors import RefusedObject
    from upstream.transport.listings import Listing, Listings
    from upstream.transport.pages import CursorPage

ENDED_WITHIN = timedelta(hours=2)  # markets with an older planned end are left to the next full scan
MAX_ENDED = 500
NEW_PAGES = 20
PAYOUT_WITHIN = timedelta(days=30)  # a disputed payout takes a week
MAX_UNSEEN = 5000
HISTORY_S = 20.0
CLOSED_MARGIN = timedelta(minutes=10)  # a market is listed as closed at least 20 s after its close time
NEW_MARGIN = timedelta(minutes=2)  # what an exchange lists by time appears some seconds later
DELETED = "deleted by the exchange"
MAIN = "polymarket"  # its stage and its state have no exchange in their names: they were there before others


class DiscoveryState(msgspec.Struct, omit_defaults=True):
    """Discovery state, kept between runs in table `settings` under `discovery`, and an exchange's name."""

    tried_at: datetime | None = None
    """When the last full scan began."""
    full_at: datetime | None = None
    """When the last full scan ended."""
    looked_at: datetime | None = None
    """When a check for new and ended markets last began; also when it failed, so that the next one waits its time."""
    changes_until: datetime | None = None
    """Up to when an exchange that lists by time has been asked for what is new."""
    history_cursor: str | None = None
    """Where the scan of closed markets that is under way continues."""
    history_began: datetime | None = None
    """When that scan began."""
    history_until: datetime | None = None
    """When the last completed scan of closed markets began; null until the whole history has been scanned."""

    @classmethod
    def read(cls, conn: psycopg.Connection[Any], exchange: str = MAIN) -> DiscoveryState:
        """Read the stored state."""
        return msgspec.convert(queries.state(conn, name=stage_of(exchange)) or {}, cls)


def stage_of(exchange: str) -> str:
    """Return the stage of an exchange's discovery, after which its state and its lock are named, too.

    >>> stage_of("polymarket"), stage_of("kalshi")
    ('discovery', 'discovery_kalshi')
    """
    return EXCHANGES[exchange].own("discovery")


@dataclass
class DiscoveryReport:
    """What one run of discovery has done."""

    stored: StoreResult = StoreResult()  # noqa: RUF009 (frozen)
    pages: int = 0
    rows: int = 0
    head: list[Listing] = field(default_factory=list)

    def add(self, markets: Sequence[Listing], stored: StoreResult) -> None:
        """Count a page."""
        self.pages += 1
        self.rows += len(markets)
        self.stored += stored
        self.head += markets[: 5 - len(self.head)]


def due(state: DiscoveryState, now: datetime, settings: Settings) -> str | None:
    """Return the scan that is due: `full`, `changes`, or none yet."""
    pause = timedelta(seconds=settings.discovery_changes_s)
    begun = state.tried_at
    unfinished = begun is not None and (state.full_at is None or state.full_at < begun)
    wait = pause if unfinished else timedelta(seconds=settings.discovery_full_s)
    if begun is None or now - begun >= wait:
        return "full"
    if state.looked_at is None or now - state.looked_at >= pause:
        return "changes"
    return None


class Discovery:
    """One run's scans. Each page is committed as it arrives, and served while the next ones are still to come."""

    def __init__(
        self,
        conn: psycopg.Connection[Any],
        listings: Listings,
        settings: Settings,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.conn = conn  # autocommit
        self.listings = listings
        self.settings = settings
        self.now = now
        self.stage = stage_of(listings.exchange)
        self.state = DiscoveryState.read(conn, listings.exchange)
        self.report = DiscoveryReport()

    def scan_open(self) -> None:
        """Scan every open market; then request those of ours that were not among them."""
        began = self.now()
        taking_stock = self.state.full_at is None
        self.remember(tried_at=began, looked_at=began)
        seen: set[str] = set()

        def take(page: CursorPage[Listing], cause: str) -> None:
            seen.update(market.market_id for market in page.items)
            self.take(page, cause, announce_new=not taking_stock)

        if taking_stock and (busiest := self.listings.busiest()) is not None:
            take(busiest, "discovered")
        looked = time.monotonic()
        for page in _ahead(self.listings.open_pages()):
            take(page, "discovered")
            if not taking_stock and time.monotonic() - looked >= self.settings.discovery_changes_s:
                self.look()  # a full scan takes minutes: new markets do not wait for it
                looked = time.monotonic()
        exchange = self.listings.exchange
        asked = {"since": began, "source": self.settings.source, "exchange": exchange}
        ours = [row[0] for row in queries.unseen(self.conn, **asked)]
        unseen = [market_id for market_id in ours if market_id not in seen]
        self.refresh(unseen[:MAX_UNSEEN], "no longer listed as open", over=self.listings.forgets)
        unpaid = [row[0] for row in queries.unpaid(self.conn, since=began - PAYOUT_WITHIN, exchange=exchange)]
        self.refresh(unpaid, "payout")
        ended = self.now()
        self.remember(full_at=ended)
        if self.listings.lists_by_time and self.state.changes_until is None:
            self.remember(changes_until=began)
        figures = {
            "full_walk_at": ended,
            "open_markets": len(seen),
            "seconds": round((ended - began).total_seconds(), 1),
        }
        self.beat(brought=False, detail=msgspec.json.encode(figures).decode())

    def look(self) -> None:
        """Read the newest markets, back to those that we know, and request those that have just passed their end."""
        now = self.now()
        since = (self.state.changes_until or now) - NEW_MARGIN
        self.remember(looked_at=now)
        for number, page in enumerate(self.listings.new_pages(since), 1):
            is_known = not self.take(page, "listed").inserted
            if not self.listings.lists_by_time and (is_known or number == NEW_PAGES):
                break
        if self.listings.lists_by_time:
            self.remember(changes_until=now)
        asked = {"since": self.now() - ENDED_WITHIN, "most": MAX_ENDED, "exchange": self.listings.exchange}
        self.refresh([row[0] for row in queries.ended(self.conn, **asked)], "ended")

    def scan_closed(self, seconds: float = HISTORY_S) -> None:
        """Continue the scan of closed markets for some time; once it is complete, read those closed since."""
        deadline = time.monotonic() + seconds
        if self.state.history_began is None:
            self.remember(history_began=self.now())
        try:
            self._scan_closed(deadline)
        except Rejected:
            if self.state.history_cursor is None:
                raise
            self.remember(history_cursor=None)  # the exchange no longer knows the cursor: start over next time

    def scan_closed_since(self, since: datetime) -> None:
        """Read the markets that were closed since an instant, newest first."""
        for page in self.listings.closed_pages(None, since):
            self.take(page, "closed", announce_new=False)

    def _scan_closed(self, deadline: float) -> None:
        cursor, until = self.state.history_cursor, self.state.history_until
        pages = self.listings.closed_pages(cursor, until and until - CLOSED_MARGIN)
        for page in _ahead(pages) if until is None else pages:
            self.take(page, "closed", announce_new=False)
            if page.next_cursor is None:
                self.remember(history_cursor=None, history_began=None, history_until=self.state.history_began)
                return
            self.remember(history_cursor=page.next_cursor)
            if time.monotonic() >= deadline:
                return

    def refresh(self, market_ids: Sequence[str], cause: str, *, over: bool = False) -> None:
        """Request markets by their IDs, open or not. With `over`, those that the exchange does not know are closed."""
        for start in range(0, len(market_ids), 100):
            some = market_ids[start : start + 100]
            page = self.listings.named(some)
            self.take(page, cause, announce_new=False)
            gone = set(some).difference(market.market_id for market in page.items) if over else ()
            # One that cannot be read is not gone, and may be any of them.
            if gone and not any(refusal.reason.startswith("market") for refusal in page.refused):
                rows = [{"market_id": market_id, "status": "CLOSED"} for market_id in gone]
                self.report.stored += store(self.conn, rows, cause=DELETED)

    def take(self, page: CursorPage[Listing], cause: str, *, announce_new: bool = True) -> StoreResult:
        """Store a page, and quarantine what could not be parsed."""
        for refusal in page.refused:
            quarantine(self.conn, refusal)
        return self.put(page.items, cause, announce_new=announce_new)

    def put(self, markets: Sequence[Listing], cause: str, *, announce_new: bool) -> StoreResult:
        """Store markets."""
        stored = store(
            self.conn,
            [market.row(self.settings.source) for market in markets],
            cause=cause,
            events=_events(markets),
            announce_new=announce_new,
        )
        self.report.add(markets, stored)
        self.beat(brought=bool(stored.inserted or stored.changed))
        return stored

    def beat(self, *, brought: bool, detail: str | None = None) -> None:
        """Touch the stage's clock."""
        feed.beat(self.conn, stage=self.stage, last_data_at=self.now() if brought else None, detail=detail)

    def remember(self, **changes: Any) -> None:
        """Change the state, here and in the database."""
        self.state = msgspec.structs.replace(self.state, **changes)
        queries.remember(self.conn, name=self.stage, value=msgspec.json.encode(msgspec.to_builtins(changes)).decode())


def quarantine(conn: psycopg.Connection[Any], refusal: RefusedObject) -> None:
    """Quarantine an object that could not be parsed."""
    queries.refuse(conn, source=refusal.source, reason=refusal.reason, payload=refusal.payload)


def _events(markets: Iterable[Listing]) -> list[dict[str, Any]]:
    return [row for market in markets if (row := market.event_row()) is not None]


def _ahead(pages: Iterator[CursorPage[Listing]]) -> Iterator[CursorPage[Listing]]:
    """Yield pages, fetching the next one while the current one is stored."""
    with ThreadPoolExecutor(1, "next page") as thread:
        following = thread.submit(next, pages, None)
        while (page := following.result()) is not None:
            following = thread.submit(next, pages, None)
            yield page
