"""Fixtures: a simulated exchange, and a socket client that knows only the protocol."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import websockets

from tests.patience import until
from tests.upstream.sandbox.cuts import RECORDED
from upstream.sandbox.server import Sandbox
from upstream.transport.http import tls_context

START_MS = 1_795_000_000_000


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A simulation of 60 markets that runs during a module's tests.

    Its clock starts where a window of five minutes has just begun, so that none of them ends meanwhile.
    """
    with Sandbox(simulate=11, rate=400, start_ms=START_MS // 300_000 * 300_000 + 1_000) as exchange:
        until(lambda: exchange.exchange.trades.total > 50)
        yield exchange


@pytest.fixture
def still(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop all events on the exchange during the test."""
    sandbox.call(lambda: monkeypatch.setattr(sandbox.source, "advance", lambda *_: True))


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=60, trust_env=False, verify=tls_context()) as client:
        yield client


def token_ids(market: dict) -> list[str]:
    return market["positionIds"] if market.get("version") == "v2" else json.loads(market["clobTokenIds"])


def walk(http: httpx.Client, sandbox: Sandbox, **query: str) -> list[dict]:
    """Return every market, by keyset."""
    found: list[dict] = []
    cursor: dict[str, str] = {}
    while True:
        page = http.get(f"{sandbox.gamma_url}/markets/keyset", params={"limit": 100, **query, **cursor}).json()
        found += page["markets"]
        if "next_cursor" not in page:
            return found
        cursor = {"after_cursor": page["next_cursor"]}


def open_tokens(http: httpx.Client, sandbox: Sandbox) -> list[str]:
    return [token for market in walk(http, sandbox, closed="false") for token in token_ids(market)]


class Follower:
    """One connection to the market socket; `messages` are those outside arrays, `books` those in arrays."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket
        self.messages: list[dict] = []
        self.books: list[dict] = []
        self.texts: list[str] = []

    async def say(self, **request: object) -> None:
        await self.socket.send(json.dumps(request))

    async def listen(self, enough: Callable[[], bool]) -> None:
        """Receive until `enough()`."""
        heard_at = time.monotonic()
        while not enough():
            try:
                frame = str(await asyncio.wait_for(self.socket.recv(), 0.1))
            except TimeoutError:
                assert time.monotonic() - heard_at < 60, "nothing more comes"
                continue
            heard_at = time.monotonic()
            if frame.startswith("["):
                self.books += json.loads(frame)
            elif frame.startswith("{"):
                self.messages.append(json.loads(frame))
            else:
                self.texts.append(frame)

    async def settle(self, sandbox: Sandbox) -> None:
        """Wait until the sandbox has handled all requests, and receive all messages sent to this connection by now."""
        await self._ping()
        await asyncio.to_thread(until, lambda: sandbox.call(sandbox.hub.backlog) == 0)
        await self._ping()

    async def _ping(self) -> None:
        had = self.texts.count("PONG")
        await self.socket.send("PING")
        await self.listen(lambda: self.texts.count("PONG") > had)

    def of(self, kind: str) -> list[dict]:
        return [message for message in self.messages if message["event_type"] == kind]


def fall_silent(sandbox: Sandbox) -> None:
    """Stop all further events on a simulated exchange, and return when the last order was played."""
    later_ms = sandbox.source.now_ms + 3_600_000
    sandbox.call(lambda: setattr(sandbox.source, "rate", 1e-9))
    until(lambda: sandbox.source.now_ms > later_ms)


def follow(sandbox: Sandbox, conversation: Callable[..., object]) -> Follower:
    """Connect, run a conversation, and return the follower with all it received."""

    async def run() -> Follower:
        async with websockets.connect(sandbox.socket_url, max_size=1 << 25, proxy=None, close_timeout=0.5) as socket:
            follower = Follower(socket)
            await conversation(follower)
            return follower

    return asyncio.run(run())


@pytest.fixture(scope="module")
def small_tape(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three captures, a catalogue and trades."""
    folder = tmp_path_factory.mktemp("tape")
    for name in (
        "ws_market/20250701_mlb-det-wsh-2025-07-01_polymarket-market-events.csv.gz",
        "ws_market/20250624_mlb-pit-mil-2025-06-24_polymarket-market-events.csv.gz",
        "ws_market/20250619_mlb-min-cin-2025-06-19_polymarket-market-events.csv.gz",
        "gamma/markets_20_2024-07.json.gz",
        "trades/data_api_trades_100_raw.json",
        "trades/btc5m_1779805500_trades_ticks.json.gz",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(recorded / name)
    return folder


@pytest.fixture(scope="module")
def cuts(recorded: Path) -> dict[str, Path]:
    """Paths of the recorded files that cuts are made of."""
    return {name: recorded / name for name in RECORDED}
