"""Which tokens to follow, and on which socket."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Any

import psycopg

from orchestration.ingest.normalizer import Tracker
from orchestration.ingest.sockets.listener import Heard, Listener, Lost, Opened
from orchestration.ingest.storage.rows import Token
from sql.queries import feed as queries
from upstream.polymarket.market_channel.socket import NewMarket

AT_ONCE = 8  # connections opened at the same time
ANTICIPATE_S = 180.0  # should nobody have asked for it, discovery looks for new markets each minute
MOST_AWAITED = 5_000


class Catalogue:
    """What the catalogue says is to be followed; every call blocks."""

    def __init__(self) -> None:
        self.first: tuple[int, int] | None = None  # where it stood when it was first read
        self._cursor = (0, 0)

    def all(self, conn: psycopg.Connection[Any]) -> list[Sequence[Any]]:
        """Read everything."""
        self._cursor = queries.catalogue_cursor(conn)  # first: what comes in between is read twice
        self.first = self.first or self._cursor
        return [(*row, True) for row in queries.followed_tokens(conn)]

    def changes(self, conn: psycopg.Connection[Any]) -> list[Sequence[Any]]:
        """Read what came or changed its state since the last look."""
        cursor = queries.catalogue_cursor(conn)
        if cursor == self._cursor:
            return []
        (market_key, change_id), self._cursor = self._cursor, cursor
        return list(queries.tokens_since(conn, market_key=market_key, change_id=change_id))


class Following:
    """Spreads tokens over sockets; those of one market share one."""

    def __init__(
        self, url: str, tracker: Tracker, assets_per_socket: int, *, heard: Heard, opened: Opened, lost: Lost
    ) -> None:
        self.listeners: list[Listener] = []
        self.of_token: dict[str, Listener] = {}
        self.loaded = False  # the catalogue has said what to follow
        self._url = url
        self._tracker = tracker
        self._assets_per_socket = assets_per_socket
        self._opening = asyncio.Semaphore(AT_ONCE)
        self._heard, self._opened, self._lost = heard, opened, lost
        self._numbers = 0
        self._awaited_until: dict[str, float] = {}

    def take(self, rows: Iterable[Sequence[Any]], *, whole: bool, fresh: bool) -> set[int]:
        """Follow what the catalogue says (`whole`: and nothing else); give the markets that were not followed before.

        Where we are listening already, what was announced to us is `fresh`.
        """
        self.loaded = True
        begun: set[int] = set()
        wanted: dict[str, Token] = {}
        unwanted: list[str] = []
        for token_id, market_id, market_key, outcome, tick_size, last, last_ms, volume, follow in rows:
            track = self._tracker.tracks.get(token_id)
            if not follow:
                unwanted.append(token_id)
                continue
            wanted[token_id] = Token(token_id, market_id, market_key, outcome)
            if track is None:
                heard = fresh and token_id in self._awaited_until
                track = self._tracker.follow(wanted[token_id], tick_size, fresh=heard)
                begun.add(market_key)
            if track.last_ms is None:
                track.last, track.last_ms = last, last_ms
            track.volume_24h_usd = volume
        if whole:
            awaited = self._awaited_until
            unwanted = [token_id for token_id in self.of_token if token_id not in wanted and token_id not in awaited]
        for token_id in wanted:
            self._awaited_until.pop(token_id, None)
        self._leave([*unwanted, *self._given_up()])
        markets: dict[int, list[str]] = {}
        for token in wanted.values():
            if token.token_id not in self.of_token:
                markets.setdefault(token.market_key, []).append(token.token_id)
        self._follow(markets.values())
        return begun

    def value(self, volumes: Mapping[int, int]) -> None:
        """Take what was traded in 24 hours, by market: prices tell it."""
        if volumes:
            for track in self._tracker.tracks.values():
                track.volume_24h_usd = volumes.get(track.token.market_key, track.volume_24h_usd)

    def anticipate(self, announced: Iterable[NewMarket]) -> None:
        """Listen to markets that were announced just now; what is said of them waits until the catalogue knows them."""
        until = monotonic() + ANTICIPATE_S
        for market in announced:
            token_ids = [token_id for token_id in market.token_ids if token_id not in self.of_token]
            if token_ids and len(self._awaited_until) < MOST_AWAITED:
                self._awaited_until.update(dict.fromkeys(token_ids, until))
                self._tracker.awaited.update({token_id: [] for token_id in token_ids})
                self._follow([token_ids])

    def _given_up(self) -> list[str]:
        """Name tokens that were announced and never came."""
        now = monotonic()
        gone = [token_id for token_id, until in self._awaited_until.items() if until < now]
        for token_id in gone:
            del self._awaited_until[token_id]
            self._tracker.awaited.pop(token_id, None)
        return gone

    def _follow(self, markets: Iterable[list[str]]) -> None:
        given: dict[Listener, list[str]] = {}
        started = []
        room = {listener: self._assets_per_socket - len(listener.tokens) for listener in self.listeners}
        for token_ids in markets:
            listener = next((each for each, left in room.items() if left >= len(token_ids)), None)
            if listener is None:
                self._numbers += 1
                listener = Listener(
                    self._url, self._numbers, self._opening, heard=self._heard, opened=self._opened, lost=self._lost
                )
                self.listeners.append(listener)
                room[listener] = self._assets_per_socket
                started.append(listener)
            room[listener] -= len(token_ids)
            if room[listener] <= 0:
                del room[listener]
            given.setdefault(listener, []).extend(token_ids)
        for listener, token_ids in given.items():
            listener.follow(token_ids)
            self.of_token.update(dict.fromkeys(token_ids, listener))
        for listener in started:
            listener.start()

    def _leave(self, token_ids: Iterable[str]) -> None:
        gone: dict[Listener, list[str]] = {}
        for token_id in token_ids:
            if listener := self.of_token.pop(token_id, None):
                gone.setdefault(listener, []).append(token_id)
                self._tracker.leave(token_id)
        for listener, their in gone.items():
            listener.leave(their)

    async def stop(self) -> None:
        """Close every socket."""
        await asyncio.gather(*(listener.stop() for listener in self.listeners))
