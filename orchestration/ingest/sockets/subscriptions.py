"""Token subscriptions: which tokens to follow, and on which socket."""

import asyncio
from collections.abc import Container, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple

import psycopg

from config.exchanges import POLYMARKET, Exchange
from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.exchanges.base import ExchangeClient
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.sockets.listener import Keep, OnLost, OnMessages, OnMissed, OnOpened, SocketListener
from orchestration.ingest.storage.rows import Token
from sql.queries import feed as queries
from upstream.polymarket.market_channel.socket import NewMarket

MAX_CONCURRENT_CONNECTS = 8  # connections opened at the same time
ANTICIPATE_S = 180.0  # if not stored by then, discovery finds it: it reads new markets each minute
MAX_PENDING_TOKENS = 5_000
MIN_ENDING_S = 30.0  # a market that has ended is followed at least this long,
QUIET_S = 10.0  # and until its socket has delivered what was sent before, or delivers nothing more
COMPARED_MARKETS = 2_000  # at a time with the catalogue: neither the database nor the event loop waits for long
MAX_KEY = 2**31 - 1


class Followed(NamedTuple):
    """The followed markets between two keys, inclusive, and the number of tokens of each."""

    first_key: int
    last_key: int
    tokens: Mapping[int, int]


class Catalogue:
    """Reads from the catalogue which tokens of an exchange to follow; every call blocks."""

    def __init__(self, shard: Shard = WHOLE, exchange: Exchange = POLYMARKET) -> None:
        self._of = {"exchange": exchange.name, **shard.columns()}
        self.first: tuple[int, int] | None = None  # its cursor when it was first read
        self._cursor = (0, 0)
        self._uncompared: list[Followed] = []  # what is left of the comparison that is under way

    def all(self, conn: psycopg.Connection[Any]) -> list[Sequence[Any]]:
        """Return all tokens of the shard."""
        self._cursor = queries.catalogue_cursor(conn)  # first: what is added in between is read twice
        self.first = self.first or self._cursor
        return [(*row, True) for row in queries.followed_tokens(conn, **self._of)]

    def changes(self, conn: psycopg.Connection[Any], unknown: Iterable[str] = ()) -> list[Sequence[Any]]:
        """Return the tokens of markets added or changed since the last read, and of those with a token of `unknown`."""
        cursor = queries.catalogue_cursor(conn)
        (market_key, change_id), token_ids, rows = self._cursor, list(unknown), []
        if token_ids or cursor != self._cursor:
            changed = queries.changed_markets(conn, market_key=market_key, change_id=change_id, token_ids=token_ids)
            rows = self._tokens(conn, [row[0] for row in changed])
        self._cursor = cursor  # last: what a query that fails did not return is read again
        return rows

    @property
    def comparing(self) -> bool:
        """Whether a comparison is under way."""
        return bool(self._uncompared)

    def compare(self, followed: Mapping[int, int]) -> None:
        """Begin to compare what is followed, the number of tokens by market, with what should be."""
        markets = sorted(followed.items())
        starts = range(0, max(len(markets), 1), COMPARED_MARKETS)
        parts = [dict(markets[start : start + COMPARED_MARKETS]) for start in starts]
        firsts = [0, *(min(part) for part in parts[1:])]
        lasts = [*(first - 1 for first in firsts[1:]), MAX_KEY]
        self._uncompared = [*map(Followed, firsts, lasts, parts)]

    def differences(self, conn: psycopg.Connection[Any]) -> list[Sequence[Any]]:
        """Compare the next part; return the tokens of markets of which other tokens are followed than should be.

        What was followed when the comparison began counts: what has changed since is read again. It ends if this fails.
        """
        uncompared, self._uncompared = self._uncompared, []
        if not uncompared:
            return []
        first_key, last_key, followed = uncompared.pop()
        found = queries.followed_markets(conn, first_key=first_key, last_key=last_key, **self._of)
        wanted = dict(zip(*found, strict=True))
        differing = {market_key for market_key, tokens in wanted.items() if followed.get(market_key) != tokens}
        differing |= followed.keys() - wanted.keys()
        rows = self._tokens(conn, [*differing])
        self._uncompared = uncompared
        return rows

    def _tokens(self, conn: psycopg.Connection[Any], market_keys: list[int]) -> list[Sequence[Any]]:
        return [*queries.tokens_of(conn, market_keys=market_keys, **self._of)] if market_keys else []


class Announced(NamedTuple):
    """A token whose market was announced: until when it is awaited, monotonic, and when it was listed."""

    until: float
    listed_ms: int  # the exchange's time; 0 if it did not say


class Subscriptions:
    """Distributes tokens over sockets; the tokens of one market share a socket."""

    def __init__(
        self,
        exchange: ExchangeClient,
        normalizer: Normalizer,
        assets_per_socket: int,
        *,
        on_messages: OnMessages,
        on_opened: OnOpened,
        on_lost: OnLost,
        on_missed: OnMissed,
        keep: Keep | None = None,
    ) -> None:
        self.listeners: list[SocketListener] = []
        self.of_token: dict[str, SocketListener] = {}
        self.loaded = False  # the catalogue was read
        self._exchange = exchange
        self._normalizer = normalizer
        self._assets_per_socket = assets_per_socket
        self._opening = asyncio.Semaphore(MAX_CONCURRENT_CONNECTS)
        self._on_messages, self._on_opened, self._on_lost = on_messages, on_opened, on_lost
        self._on_missed = on_missed
        self._keep = keep
        self._numbers = 0
        self._of_market: dict[int, SocketListener] = {}  # by market key, while the parts of an update are added
        self._announced: dict[str, Announced] = {}  # tokens not in the catalogue yet
        self._ending: dict[str, tuple[float, int]] = {}  # tokens to unfollow: since when, monotonic and by our clock

    def apply(self, rows: Sequence[Sequence[Any]], *, whole: bool, fresh: bool) -> set[int]:
        """Follow the catalogue's tokens (`whole`: and no others); return the markets that were not followed before.

        With `fresh`, tokens announced to us while listening count as listed then.
        """
        begun = self.add(rows, fresh=fresh)
        self.complete({row[0] for row in rows} if whole else None)
        return begun

    def add(self, rows: Iterable[Sequence[Any]], *, fresh: bool) -> set[int]:
        """Do `apply`'s work for a part of the catalogue's tokens; `complete` ends it."""
        begun: set[int] = set()
        wanted: dict[str, Token] = {}
        unwanted: list[str] = []
        for token_id, market_id, market_key, outcome, tick_size, last, last_ms, volume, follow in rows:
            state = self._normalizer.states.get(token_id)
            if not follow:
                unwanted.append(token_id)
                continue
            if state is None:
                announced = self._announced.get(token_id)
                token = Token(token_id, market_id, market_key, outcome)
                state = self._normalizer.follow(
                    token, tick_size, listed_ms=announced.listed_ms if fresh and announced else 0
                )
                begun.add(market_key)
            wanted[token_id] = state.token
            if state.last_ms is None:
                state.last, state.last_ms = last, last_ms
            self._normalizer.volumes_24h_usd[market_key] = volume
        for token_id in wanted:
            self._announced.pop(token_id, None)
        self._end(unwanted, wanted)
        self._unfollow([*self._ended(), *self._expired()])  # first: what they leave is room for others
        markets: dict[int, list[str]] = {}
        for token in wanted.values():
            if listener := self.of_token.get(token.token_id):
                self._of_market[token.market_key] = listener
            else:
                markets.setdefault(token.market_key, []).append(token.token_id)
        self._follow((token_ids, self._of_market.get(market_key)) for market_key, token_ids in markets.items())
        self._of_market.update((market_key, self.of_token[token_ids[0]]) for market_key, token_ids in markets.items())
        return begun

    def complete(self, listed: Container[str] | None) -> None:
        """End an update; `listed` has all tokens to follow (None: the update was of some)."""
        self.loaded = True
        self._of_market = {}
        if listed is not None:
            pending = self._announced
            self._end([token_id for token_id in self.of_token if token_id not in listed and token_id not in pending])
        self._unfollow([*self._ended(), *self._expired()])

    def anticipate(self, announced: Iterable[NewMarket]) -> None:
        """Subscribe to just announced markets; their messages are buffered until the catalogue has them."""
        until = monotonic() + ANTICIPATE_S
        for market in announced:
            token_ids = [token_id for token_id in market.token_ids if token_id not in self.of_token]
            if token_ids and len(self._announced) < MAX_PENDING_TOKENS:
                self._announced.update(dict.fromkeys(token_ids, Announced(until, market.ts_ms)))
                self._normalizer.pending.update({token_id: [] for token_id in token_ids})
                self._follow([(token_ids, None)])

    def _end(self, unwanted: Iterable[str], wanted: Iterable[str] = ()) -> None:
        """Take note of tokens whose market has ended, and of those that are followed after all."""
        now, local_ms = monotonic(), self._normalizer.exchange.local_ms()
        for token_id in unwanted:
            self._ending.setdefault(token_id, (now, local_ms))
        for token_id in wanted:
            self._ending.pop(token_id, None)

    def _ended(self) -> list[str]:
        """Return tokens whose market has ended, once nothing sent before its end can still be on the way."""
        now = monotonic()
        over = []
        for token_id, (since, ended_ms) in self._ending.items():
            listener = self.of_token.get(token_id)
            if listener is None or (
                now - since >= MIN_ENDING_S
                and (listener.newest_ms >= ended_ms or listener.pulse.silent_s(now) >= QUIET_S)
            ):
                over.append(token_id)
        for token_id in over:
            del self._ending[token_id]
        return over

    def _expired(self) -> list[str]:
        """Remove and return announced tokens that never appeared in the catalogue."""
        now = monotonic()
        gone = [token_id for token_id, announced in self._announced.items() if announced.until < now]
        for token_id in gone:
            del self._announced[token_id]
            self._normalizer.pending.pop(token_id, None)
            self._normalizer.interrupted.discard(token_id)
        return gone

    def _follow(self, markets: Iterable[tuple[list[str], SocketListener | None]]) -> None:
        """Follow tokens of markets, on the socket of each market's other tokens, if any, even if that is full."""
        given: dict[SocketListener, list[str]] = {}
        started = []
        room = {listener: self._assets_per_socket - len(listener.tokens) for listener in self.listeners}
        for token_ids, of_market in markets:
            listener = of_market or next((each for each, left in room.items() if left >= len(token_ids)), None)
            if listener is None:
                self._numbers += 1
                listener = SocketListener(
                    self._exchange,
                    self._numbers,
                    self._opening,
                    on_messages=self._on_messages,
                    on_opened=self._on_opened,
                    on_lost=self._on_lost,
                    on_missed=self._on_missed,
                    now_ms=self._normalizer.exchange.now_ms,
                    keep=self._keep,
                )
                self.listeners.append(listener)
                room[listener] = self._assets_per_socket
                started.append(listener)
            room[listener] = room.get(listener, 0) - len(token_ids)
            if room[listener] <= 0:
                del room[listener]
            given.setdefault(listener, []).extend(token_ids)
        for listener, token_ids in given.items():
            listener.follow(token_ids)
            self.of_token.update(dict.fromkeys(token_ids, listener))
        for listener in started:
            listener.start()

    def _unfollow(self, token_ids: Iterable[str]) -> None:
        gone: dict[SocketListener, list[str]] = {}
        for token_id in token_ids:
            if listener := self.of_token.pop(token_id, None):
                gone.setdefault(listener, []).append(token_id)
                self._normalizer.unfollow(token_id)
        for listener, their in gone.items():
            listener.unfollow(their)

    async def stop(self) -> None:
        """Close every socket."""
        await asyncio.gather(*(listener.stop() for listener in self.listeners))
