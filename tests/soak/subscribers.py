"""Many subscribers with various filters that reconnect at random, and the events each should receive."""

from __future__ import annotations

import asyncio
import random
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from presage_client import AsyncStream
from tests.soak.stream_writer import MARKETS, TYPES, WALLETS

if TYPE_CHECKING:
    from presage_client import StreamGap


class Row(NamedTuple):
    """An event, as committed."""

    seq: int
    type: str
    market_id: str | None
    wallet: bytes | None


@dataclass
class Subscriber:
    """A subscriber with its filter, and what it received."""

    key: str
    watched: frozenset[bytes]  # by the key's account
    markets: frozenset[str] | None
    types: frozenset[str] | None
    wallets: frozenset[bytes]
    received: list[int] = field(default_factory=list)
    gaps: list[StreamGap] = field(default_factory=list)
    connections: int = 0
    last: int = 0
    stream: AsyncStream | None = None

    def wants(self, row: Row) -> bool:
        if row.wallet is not None and row.wallet in self.wallets:
            return True
        if row.wallet is not None and row.wallet not in self.watched:
            return False
        return (self.markets is None or row.market_id in self.markets) and (
            self.types is None or row.type in self.types
        )

    async def listen(self, url: str) -> None:
        while True:
            stream = self.stream = CountingStream(
                url,
                self.key,
                markets=None if self.markets is None else sorted(self.markets),
                types=None if self.types is None else sorted(self.types),
                wallets=[f"0x{wallet.hex()}" for wallet in self.wallets],
                resume_from=self.last,
                on_gap=self.gaps.append,
            )
            stream.subscriber = self
            async with stream:
                async for event in stream:
                    self.received.append(event.seq)
                    self.last = event.seq


class CountingStream(AsyncStream):
    """A stream that counts its connections for its subscriber."""

    subscriber: Subscriber

    async def _connect(self):
        connected = await super()._connect()
        self.subscriber.connections += 1
        return connected


def random_subscriber(dice: random.Random, keys: dict[str, frozenset[bytes]]) -> Subscriber:
    key = dice.choice(list(keys))
    some = dice.random()
    return Subscriber(
        key,
        keys[key],
        None if some < 0.3 else frozenset(dice.sample(MARKETS, dice.randint(0, 6))),
        None if dice.random() < 0.5 else frozenset(dice.sample(TYPES, dice.randint(1, 4))),
        frozenset(dice.sample(WALLETS, dice.randint(0, 3))) if dice.random() < 0.4 else frozenset(),
    )


class Subscribers(threading.Thread):
    """Runs the subscribers in a thread of its own; some keep disconnecting and reconnecting."""

    def __init__(self, url: str, subscribers: list[Subscriber], seed: int) -> None:
        super().__init__(daemon=True)
        self.url, self.subscribers, self.dice = url, subscribers, random.Random(seed)
        self.reconnecting = True
        self.failed: BaseException | None = None
        self._over = threading.Event()

    def run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001 (reported by the test)
            self.failed = error

    async def _main(self) -> None:
        listening = [asyncio.create_task(each.listen(self.url)) for each in self.subscribers]
        leaving = asyncio.create_task(self._leave())
        over = asyncio.create_task(asyncio.to_thread(self._over.wait))
        done, _ = await asyncio.wait([*listening, leaving, over], return_when=asyncio.FIRST_COMPLETED)
        for task in [*listening, leaving]:
            task.cancel()
        await asyncio.gather(*listening, leaving, return_exceptions=True)
        for task in done - {over}:
            task.result()

    async def _leave(self) -> None:
        """Make one after the other reconnect: after a clean close or a cut connection."""
        while True:
            await asyncio.sleep(self.dice.uniform(0.02, 0.2))
            one = self.dice.choice(self.subscribers)
            if one.stream is None or not self.reconnecting:
                continue
            if self.dice.random() < 0.5:
                with suppress(OSError):
                    await one.stream.close()
            elif one.stream._socket is not None:
                one.stream._socket.transport.abort()

    def stop(self) -> None:
        self._over.set()
        self.join(timeout=30)
