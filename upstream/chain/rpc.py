"""Chain client over JSON-RPC: several endpoints with failover."""

from __future__ import annotations

import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Self, TypeVar

from upstream.chain.endpoint import MAX_BATCH, RpcEndpoint
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
"""Blocks the preferred endpoint may lag behind another before that one is used."""
GRACE_S = 0.25
"""Seconds that the other endpoints may take longer than the first to return their heads."""
COMPARE_S = 15.0
FORK_S = 30.0
"""Seconds that an endpoint's newest blocks may differ before it is avoided."""
DISAGREEMENT_BACKOFF_S = 300.0
FRESH_S = 30.0
MAX_HEADS_WAIT_S = 3.0
MAX_PAUSE_S = 5.0


class Rpc:
    """Uses the first of its endpoints that is healthy and not behind; thread-safe.

    Each `Endpoint` halves a range that is refused, and lets it grow again slowly. After a fault the endpoint backs off
    and the next one is used; a call that none answers within `total_s` raises `UpstreamError`. A missing response never
    means "no logs": an endpoint that does not know a range's last block is not asked for it.
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
        self.endpoints = [RpcEndpoint(url, order, self._client) for order, url in enumerate(urls)]
        self._current = self.endpoints[0]
        self._total_s = total_s
        self._rounds = rounds
        self._clock = clock
        self._sleep = sleep
        self._compare_s = compare_s
        self._compared_at = float("-inf")
        self._pending_reads: dict[RpcEndpoint, Future[Any]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(len(urls), "heads") if len(urls) > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._client.close()

    def heads(self) -> Heads:
        """Return the chain's heads as the endpoint in use sees them; the other endpoints are checked too."""
        self._refresh_heads()
        now = self._clock()
        known = [each for each in self.endpoints if each.health.head >= 0 and now - each.health.seen_at < FRESH_S]
        usable = [each for each in known if each.health.backoff_until <= now] or known
        if not usable:
            self._with_best(self._read_heads, -1, rounds=1)
            return self.heads_of(self._current)
        newest = max(each.health.head for each in usable)
        chosen = next(each for each in usable if each.health.head >= newest - LAG_BLOCKS)
        self._current = chosen
        self._compare(now)
        return self.heads_of(self._current)

    def heads_of(self, endpoint: RpcEndpoint) -> Heads:
        """Return the last heads of one endpoint."""
        health = endpoint.health
        if health.finalized is None:
            return Heads(health.head, max(0, health.head - FINAL_AFTER), reported=False)
        return Heads(health.head, min(health.finalized, health.head))

    def blocks(self, from_: int, to: int) -> list[Block]:
        """Return the headers of a range, both ends included."""
        read: list[Block] = []
        for first in range(from_, to + 1, MAX_BATCH):
            numbers = range(first, min(first + MAX_BATCH, to + 1))
            read += self._with_best(lambda endpoint, numbers=numbers: endpoint.blocks(numbers), numbers[-1])  # type: ignore[misc]
        return read

    def logs(
        self, from_: int, to: int, addresses: Sequence[bytes], topics: Sequence[str] | None = None
    ) -> list[RawLog]:
        """Return all logs of these contracts within a range, both ends included; `topics`: only these topics 0."""
        named = [f"0x{address.hex()}" for address in addresses]
        wanted: list[Any] = [list(topics)] if topics else []
        read: list[RawLog] = []
        start = from_
        while start <= to:
            some, last = self._with_best(lambda endpoint, start=start: endpoint.logs(start, to, named, wanted), to)  # type: ignore[misc]
            read += some
            start = last + 1
        return read

    def state(self) -> list[dict[str, Any]]:
        """Return the state of the endpoints, by name; for display."""
        now = self._clock()
        return [
            {
                "name": each.name,
                "in_use": each is self._current,
                "head": each.health.head,
                "finalized": each.health.finalized,
                "failures": dict(each.health.counts),
                "rests_s": round(max(0.0, each.health.backoff_until - now), 1),
                "last_error": each.health.last_error,
                "range": each.span,
                "forked": each.health.forked_since is not None,
            }
            for each in self.endpoints
        ]

    def _with_best(self, work: Callable[[RpcEndpoint], T], needed: int, rounds: int | None = None) -> T:
        """Run with the best endpoint, else the next ones; if all back off, wait for one, at most `MAX_PAUSE_S`."""
        until = self._clock() + self._total_s
        fault: UpstreamError = Unavailable("no endpoint was asked")
        for turn in range(rounds or self._rounds):
            now = self._clock()
            backoff_s = min(each.health.backoff_until for each in self.endpoints) - now
            pause_s = min(max(backoff_s, 0.05 * 2 ** (turn - 1) if turn else 0.0), MAX_PAUSE_S, until - now)
            if pause_s > 0:
                self._sleep(pause_s)
            for endpoint in self._ranked(needed, even_resting=turn > 0):
                try:
                    done = work(endpoint)
                except UpstreamError as met:
                    fault = met
                    with self._lock:
                        endpoint.record_failure(met, self._clock())
                    if self._clock() >= until:
                        raise
                else:
                    endpoint.record_success()
                    return done
        raise fault

    def _ranked(self, needed: int, *, even_resting: bool) -> Iterator[RpcEndpoint]:
        """Yield endpoints: healthy first, then those that know the block, then the one in use."""
        now = self._clock()

        def rank(each: RpcEndpoint) -> tuple[bool, bool, bool, int]:
            health = each.health
            return (health.backoff_until > now, health.head < needed, each is not self._current, each.order)

        ranked = sorted(self.endpoints, key=rank)
        well = [each for each in ranked if each.health.backoff_until <= now]
        yield from ranked if even_resting or not well else well

    def _refresh_heads(self) -> None:
        """Request all available endpoints' heads, and wait for the first response and a little longer."""
        now = self._clock()
        due = [each for each in self.endpoints if each.health.backoff_until <= now]
        if self._pool is None or len(due) < 2:
            if due or self._pool is None:
                self._with_best(self._read_heads, -1, rounds=2)
            return
        for each in due:
            if each not in self._pending_reads:  # one that hangs is not asked again
                self._pending_reads[each] = self._pool.submit(self._recorded, self._read_heads, each)
        left: set[Future[Any]] = set(self._pending_reads.values())
        while left and not any(each.health.seen_at >= now for each in self.endpoints):
            _, left = wait(left, self._total_s, FIRST_COMPLETED)
        wait(left, GRACE_S)
        for each, future in list(self._pending_reads.items()):
            if future.done():
                del self._pending_reads[each]
                future.result()

    def _recorded(self, work: Callable[[RpcEndpoint], T], endpoint: RpcEndpoint) -> T | None:
        try:
            done = work(endpoint)
        except UpstreamError as fault:
            with self._lock:
                endpoint.record_failure(fault, self._clock())
            return None
        endpoint.record_success()
        return done

    def _read_heads(self, endpoint: RpcEndpoint) -> None:
        head, finalized = endpoint.tip()
        endpoint.health.head = head.number
        endpoint.health.finalized = None if finalized is None else finalized.number
        endpoint.health.seen_at = self._clock()

    def _compare(self, now: float) -> None:
        """Compare the endpoints' blocks: final ones, and the newest that all have."""
        fresh = [e for e in self.endpoints if e.health.backoff_until <= now and now - e.health.seen_at < FRESH_S]
        if self._pool is None or len(fresh) < 2 or now - self._compared_at < self._compare_s:
            return
        self._compared_at = now
        final = min(self.heads_of(each).finalized for each in fresh)
        common = min(each.health.head for each in fresh)
        asked = {each: self._pool.submit(self._recorded, lambda e: e.blocks([final, common]), each) for each in fresh}
        done, _ = wait(asked.values(), MAX_HEADS_WAIT_S)
        blocks_by_endpoint = {
            each: blocks for each, future in asked.items() if future in done and (blocks := future.result())
        }
        self._avoid_minority({each: blocks[0] for each, blocks in blocks_by_endpoint.items()}, now)
        if self._current in blocks_by_endpoint:
            ours = blocks_by_endpoint[self._current][1]
            for each, blocks in blocks_by_endpoint.items():
                self._check_fork(each, blocks[1].hash != ours.hash, now)

    def _avoid_minority(self, blocks_by_endpoint: dict[RpcEndpoint, Block], now: float) -> None:
        """Avoid endpoints whose final block differs from the majority's; of two, prefer the one listed first."""
        chains: dict[bytes, list[RpcEndpoint]] = {}
        for each, block in blocks_by_endpoint.items():
            chains.setdefault(block.hash, []).append(each)
        if len(chains) < 2:
            return
        right = max(chains.values(), key=lambda those: (len(those), -those[0].order))
        for each, block in blocks_by_endpoint.items():
            if each not in right:
                each.record_failure(
                    Unavailable(f"{each.name}: another final block {block.number} than others have"), now
                )
                each.health.backoff_until = now + DISAGREEMENT_BACKOFF_S
        if self._current not in right:
            self._current = right[0]

    def _check_fork(self, endpoint: RpcEndpoint, forked: bool, now: float) -> None:  # noqa: FBT001
        """Avoid an endpoint whose newest blocks differ for long; brief differences are normal."""
        health = endpoint.health
        if not forked:
            health.forked_since = None
        elif health.forked_since is None:
            health.forked_since = now
        elif now - health.forked_since > FORK_S:
            endpoint.record_failure(Unavailable(f"{endpoint.name}: other newest blocks for long"), now)
