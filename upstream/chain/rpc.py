"""The chain over JSON-RPC: several endpoints as if they were one that is well."""

from __future__ import annotations

import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Self, TypeVar

from upstream.chain.endpoint import MOST_BATCH, Endpoint
from upstream.chain.wire import FINAL_AFTER, Block, Heads, RawLog
from upstream.transport.errors import Unavailable, UpstreamError
from upstream.transport.http import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    import httpx

T = TypeVar("T")

MAX_BODY = 64 << 20
LAG_BLOCKS = 3
"""So far the preferred endpoint may be behind another before that one is used."""
GRACE_S = 0.25
"""How much longer than the first the other endpoints may take to tell their heads."""
COMPARE_S = 15.0
FORK_S = 30.0
"""So long another endpoint may have other newest blocks before it is left alone."""
DISAGREES_S = 300.0
FRESH_S = 30.0
PATIENCE_S = 3.0
MOST_PAUSE_S = 5.0


class Rpc:
    """Asks the first of its endpoints that is well and not behind; safe for threads.

    A refused range is halved and grows again slowly, separately for each endpoint. A fault makes the endpoint rest, and
    the next one is asked; what none answers within `total_s` is an `UpstreamError`. Nobody's silence is taken for "no
    logs": an endpoint that does not know a range's last block is not asked for it.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        transport: httpx.BaseTransport | None = None,
        connect_s: float = 5.0,
        read_s: float = 20.0,
        total_s: float = 90.0,
        rounds: int = 5,
        compare_s: float = COMPARE_S,
        max_body: int = MAX_BODY,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not urls:
            raise ValueError("no endpoint is named")
        self._client = Client(
            transport=transport, connect_s=connect_s, read_s=read_s, total_s=total_s, attempts=1, max_body=max_body
        )
        self.endpoints = [Endpoint(url, order, self._client) for order, url in enumerate(urls)]
        self._current = self.endpoints[0]
        self._total_s = total_s
        self._rounds = rounds
        self._clock = clock
        self._sleep = sleep
        self._compare_s = compare_s
        self._compared_at = float("-inf")
        self._looking: dict[Endpoint, Future[Any]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(len(urls), "heads") if len(urls) > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._client.close()

    def heads(self) -> Heads:
        """Tell how far the chain is, as the endpoint in use sees it; the others are looked at, too."""
        self._survey()
        now = self._clock()
        known = [each for each in self.endpoints if each.health.head >= 0 and now - each.health.seen_at < FRESH_S]
        usable = [each for each in known if each.health.rests_until <= now] or known
        if not usable:
            self._asked(self._look, -1, rounds=1)
            return self.heads_of(self._current)
        newest = max(each.health.head for each in usable)
        chosen = next(each for each in usable if each.health.head >= newest - LAG_BLOCKS)
        self._current = chosen
        self._compare(now)
        return self.heads_of(self._current)

    def heads_of(self, endpoint: Endpoint) -> Heads:
        """Tell what one endpoint said last."""
        health = endpoint.health
        if health.finalized is None:
            return Heads(health.head, max(0, health.head - FINAL_AFTER), told=False)
        return Heads(health.head, min(health.finalized, health.head))

    def blocks(self, from_: int, to: int) -> list[Block]:
        """Read the headers of a range, both ends included."""
        read: list[Block] = []
        for first in range(from_, to + 1, MOST_BATCH):
            numbers = range(first, min(first + MOST_BATCH, to + 1))
            read += self._asked(lambda endpoint, numbers=numbers: endpoint.blocks(numbers), numbers[-1])  # type: ignore[misc]
        return read

    def logs(
        self, from_: int, to: int, addresses: Sequence[bytes], topics: Sequence[str] | None = None
    ) -> list[RawLog]:
        """Read all logs of these contracts within a range, both ends included; `topics`: only these topics 0."""
        named = [f"0x{address.hex()}" for address in addresses]
        wanted: list[Any] = [list(topics)] if topics else []
        read: list[RawLog] = []
        start = from_
        while start <= to:
            some, last = self._asked(lambda endpoint, start=start: endpoint.logs(start, to, named, wanted), to)  # type: ignore[misc]
            read += some
            start = last + 1
        return read

    def state(self) -> list[dict[str, Any]]:
        """Tell how the endpoints are, by name; for people."""
        now = self._clock()
        return [
            {
                "name": each.name,
                "in_use": each is self._current,
                "head": each.health.head,
                "finalized": each.health.finalized,
                "failures": dict(each.health.counts),
                "rests_s": round(max(0.0, each.health.rests_until - now), 1),
                "last_error": each.health.last_error,
                "range": each.span,
                "forked": each.health.forked_since is not None,
            }
            for each in self.endpoints
        ]

    def _asked(self, work: Callable[[Endpoint], T], needed: int, rounds: int | None = None) -> T:
        """Do it with the best endpoint, or the next ones; where all rest, once one has, or after `MOST_PAUSE_S`."""
        until = self._clock() + self._total_s
        fault: UpstreamError = Unavailable("no endpoint was asked")
        for turn in range(rounds or self._rounds):
            now = self._clock()
            rest_s = min(each.health.rests_until for each in self.endpoints) - now
            pause_s = min(max(rest_s, 0.05 * 2 ** (turn - 1) if turn else 0.0), MOST_PAUSE_S, until - now)
            if pause_s > 0:
                self._sleep(pause_s)
            for endpoint in self._ranked(needed, even_resting=turn > 0):
                try:
                    done = work(endpoint)
                except UpstreamError as met:
                    fault = met
                    with self._lock:
                        endpoint.ill(met, self._clock())
                    if self._clock() >= until:
                        raise
                else:
                    endpoint.well()
                    return done
        raise fault

    def _ranked(self, needed: int, *, even_resting: bool) -> Iterator[Endpoint]:
        """Order endpoints: well before resting, those that know the block before others, the one in use first."""
        now = self._clock()

        def rank(each: Endpoint) -> tuple[bool, bool, bool, int]:
            health = each.health
            return (health.rests_until > now, health.head < needed, each is not self._current, each.order)

        ranked = sorted(self.endpoints, key=rank)
        well = [each for each in ranked if each.health.rests_until <= now]
        yield from ranked if even_resting or not well else well

    def _survey(self) -> None:
        """Ask all endpoints that do not rest for their heads, and wait for the first answer and little longer."""
        now = self._clock()
        due = [each for each in self.endpoints if each.health.rests_until <= now]
        if self._pool is None or len(due) < 2:
            if due or self._pool is None:
                self._asked(self._look, -1, rounds=2)
            return
        for each in due:
            if each not in self._looking:  # one that hangs is not asked again meanwhile
                self._looking[each] = self._pool.submit(self._noted, self._look, each)
        left: set[Future[Any]] = set(self._looking.values())
        while left and not any(each.health.seen_at >= now for each in self.endpoints):
            _, left = wait(left, self._total_s, FIRST_COMPLETED)
        wait(left, GRACE_S)
        for each, future in list(self._looking.items()):
            if future.done():
                del self._looking[each]
                future.result()

    def _noted(self, work: Callable[[Endpoint], T], endpoint: Endpoint) -> T | None:
        try:
            done = work(endpoint)
        except UpstreamError as fault:
            with self._lock:
                endpoint.ill(fault, self._clock())
            return None
        endpoint.well()
        return done

    def _look(self, endpoint: Endpoint) -> None:
        head, finalized = endpoint.tip()
        endpoint.health.head = head.number
        endpoint.health.finalized = None if finalized is None else finalized.number
        endpoint.health.seen_at = self._clock()

    def _compare(self, now: float) -> None:
        """Hold the endpoints' blocks against each other: final ones, and the newest that all have."""
        fresh = [e for e in self.endpoints if e.health.rests_until <= now and now - e.health.seen_at < FRESH_S]
        if self._pool is None or len(fresh) < 2 or now - self._compared_at < self._compare_s:
            return
        self._compared_at = now
        final = min(self.heads_of(each).finalized for each in fresh)
        common = min(each.health.head for each in fresh)
        asked = {each: self._pool.submit(self._noted, lambda e: e.blocks([final, common]), each) for each in fresh}
        done, _ = wait(asked.values(), PATIENCE_S)
        told = {each: blocks for each, future in asked.items() if future in done and (blocks := future.result())}
        self._part({each: blocks[0] for each, blocks in told.items()}, now)
        if self._current in told:
            ours = told[self._current][1]
            for each, blocks in told.items():
                self._forked(each, blocks[1].hash != ours.hash, now)

    def _part(self, told: dict[Endpoint, Block], now: float) -> None:
        """Leave alone who has another final block than most; of two, than the one named first."""
        chains: dict[bytes, list[Endpoint]] = {}
        for each, block in told.items():
            chains.setdefault(block.hash, []).append(each)
        if len(chains) < 2:
            return
        right = max(chains.values(), key=lambda those: (len(those), -those[0].order))
        for each, block in told.items():
            if each not in right:
                each.ill(Unavailable(f"{each.name}: another final block {block.number} than others have"), now)
                each.health.rests_until = now + DISAGREES_S
        if self._current not in right:
            self._current = right[0]

    def _forked(self, endpoint: Endpoint, forked: bool, now: float) -> None:  # noqa: FBT001
        """Leave alone who has other newest blocks for long; a moment's difference is what chains do."""
        health = endpoint.health
        if not forked:
            health.forked_since = None
        elif health.forked_since is None:
            health.forked_since = now
        elif now - health.forked_since > FORK_S:
            endpoint.ill(Unavailable(f"{endpoint.name}: other newest blocks for long"), now)
