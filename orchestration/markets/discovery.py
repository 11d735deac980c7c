"""How the exchange's catalogue is walked: what is open, what is new or has ended, and, once, its whole history."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from orchestration.markets.catalogue import Stored, store
from sql.queries import catalogue as queries
from sql.queries import feed
from upstream.transport.errors import Rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import psycopg

    from config.settings import Settings
    from upstream.polymarket.gamma.client import Gamma, Market, Page

ENDED_WITHIN = timedelta(hours=2)  # of a planned end passed longer ago the next full walk is to tell
ENDED_AT_ONCE = 500
NEW_PAGES = 20
PAYOUT_WITHIN = timedelta(days=30)  # a disputed payout takes a week
UNSEEN_AT_ONCE = 5000
HISTORY_S = 20.0


class State(msgspec.Struct, omit_defaults=True):
    """What is remembered between runs, in table `settings` under `discovery`."""

    tried_at: datetime | None = None
    """When the last full walk began."""
    full_at: datetime | None = None
    """When the last full walk came to its end."""
    looked_at: datetime | None = None
    """When a look for new and ended markets last began; also when it failed, so that the next waits its time."""
    history_cursor: str | None = None
    history_until: datetime | None = None
    """When the walk through closed markets came to its end; null while it is under way."""

    @classmethod
    def read(cls, conn: psycopg.Connection[Any]) -> State:
        """Remember."""
        return msgspec.convert(queries.state(conn) or {}, cls)


@dataclass
class Report:
    """What one run of discovery has done."""

    stored: Stored = Stored()  # noqa: RUF009 (frozen)
    pages: int = 0
    rows: int = 0
    head: list[Market] = field(default_factory=list)

    def add(self, markets: Sequence[Market], stored: Stored) -> None:
        """Count a page."""
        self.pages += 1
        self.rows += len(markets)
        self.stored += stored
        self.head += markets[: 5 - len(self.head)]


def due(state: State, now: datetime, settings: Settings) -> str | None:
    """Name the walk that is due: `full`, `changes`, or none yet."""
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
    """One run's walks. Each page is committed as it comes, and served while the next is still to be asked for."""

    def __init__(
        self,
        conn: psycopg.Connection[Any],
        gamma: Gamma,
        settings: Settings,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.conn = conn  # autocommit
        self.gamma = gamma
        self.settings = settings
        self.now = now
        self.state = State.read(conn)
        self.report = Report()

    def walk_open(self) -> None:
        """Walk every open market; then ask for those of ours that were not among them."""
        began = self.now()
        taking_stock = self.state.full_at is None
        self.remember(tried_at=began, looked_at=began)
        seen: set[str] = set()

        def take(page: Page[Market], cause: str) -> None:
            seen.update(market.market_id for market in page.items)
            self.take(page, cause, announce_new=not taking_stock)

        if taking_stock:  # what people look at first comes first
            most_traded = self.gamma.market_pages(None, closed=False, order="volume24hr", ascending=False)
            take(next(most_traded), "discovered")
        looked = time.monotonic()
        for page in self.gamma.market_pages(None, closed=False):
            take(page, "discovered")
            if not taking_stock and time.monotonic() - looked >= self.settings.discovery_changes_s:
                self.look()  # a full walk takes minutes: new markets do not wait for it
                looked = time.monotonic()
        ours = [row[0] for row in queries.unseen(self.conn, since=began, source=self.settings.source)]
        unseen = [market_id for market_id in ours if market_id not in seen]
        self.ask_again(unseen[:UNSEEN_AT_ONCE], "no longer listed as open")
        unpaid = [row[0] for row in queries.unpaid(self.conn, since=began - PAYOUT_WITHIN)]
        self.ask_again(unpaid, "payout")
        ended = self.now()
        self.remember(full_at=ended)
        figures = {
            "full_walk_at": ended,
            "open_markets": len(seen),
            "seconds": round((ended - began).total_seconds(), 1),
        }
        self.beat(brought=False, detail=msgspec.json.encode(figures).decode())

    def look(self) -> None:
        """Take the newest markets, back to those that we know, and ask for those that have just passed their end."""
        self.remember(looked_at=self.now())
        newest = self.gamma.market_pages(None, closed=False, order="createdAt", ascending=False)
        for _, page in zip(range(NEW_PAGES), newest, strict=False):
            if not self.take(page, "listed").inserted:
                break
        since = self.now() - ENDED_WITHIN
        ended = [row[0] for row in queries.ended(self.conn, since=since, most=ENDED_AT_ONCE)]
        self.ask_again(ended, "ended")

    def walk_closed(self, seconds: float = HISTORY_S) -> None:
        """Go on with the walk through closed markets for some time; once it is through, take those closed since."""
        deadline = time.monotonic() + seconds
        if self.state.history_until is None:
            try:
                self._walk_history(deadline)
            except Rejected:
                if self.state.history_cursor is None:
                    raise
                self.remember(history_cursor=None)  # the exchange no longer knows it: from the beginning, next time
            return
        for page in self.gamma.market_pages(None, closed=True, order="closedTime", ascending=False):
            ids = [market.market_id for market in page.items]
            settled = sum(1 for _ in queries.settled(self.conn, market_ids=ids))
            self.take(page, "closed", announce_new=False)
            if settled == len(ids) or time.monotonic() >= deadline:
                break
        self.remember(history_until=self.now())

    def walk_closed_since(self, since: datetime) -> None:
        """Take the markets that were closed since an instant, the newest first."""
        for page in self.gamma.market_pages(None, closed=True, order="closedTime", ascending=False):
            self.take(page, "closed", announce_new=False)
            if any(closed < since for market in page.items if (closed := market.closed_at()) is not None):
                return

    def _walk_history(self, deadline: float) -> None:
        for page in self.gamma.market_pages(self.state.history_cursor, closed=True):
            self.take(page, "closed", announce_new=False)
            if page.next_cursor is None:
                self.remember(history_cursor=None, history_until=self.now())
            else:
                self.remember(history_cursor=page.next_cursor)
            if time.monotonic() >= deadline:
                return

    def ask_again(self, market_ids: Sequence[str], cause: str) -> None:
        """Ask for markets by their ids, open or not."""
        for start in range(0, len(market_ids), 100):
            markets = self.gamma.markets_by_condition(market_ids[start : start + 100])
            self.put(markets, cause, announce_new=False)

    def take(self, page: Page[Market], cause: str, *, announce_new: bool = True) -> Stored:
        """Store a page, and keep what could not be read of it."""
        for refusal in page.refused:
            queries.refuse(self.conn, source=refusal.source, reason=refusal.reason, payload=refusal.payload)
        return self.put(page.items, cause, announce_new=announce_new)

    def put(self, markets: Sequence[Market], cause: str, *, announce_new: bool) -> Stored:
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
        feed.beat(self.conn, stage="discovery", last_data_at=self.now() if brought else None, detail=detail)

    def remember(self, **changes: Any) -> None:
        """Change the state, here and in the database."""
        self.state = msgspec.structs.replace(self.state, **changes)
        queries.remember(self.conn, value=msgspec.json.encode(msgspec.to_builtins(changes)).decode())


def _events(markets: Iterable[Market]) -> list[dict[str, Any]]:
    return [row for market in markets if (row := market.event_row()) is not None]
