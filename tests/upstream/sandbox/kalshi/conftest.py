"""Fixtures: a sandbox Kalshi whose clock a test moves, and a socket client that knows only the protocol."""

import asyncio
import base64
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import websockets
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.patience import PATIENCE_S, until
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.transport.http import tls_context

START_MS = 1_795_000_000_000
SECOND, MINUTE = 1_000, 60_000


@pytest.fixture
def sandbox() -> Iterator[KalshiSandbox]:
    """A simulation of 40 markets whose clock a test moves by `play`."""
    with KalshiSandbox(simulate=11, start_ms=START_MS, markets=40, rate=40, hold=True) as exchange:
        yield exchange


@pytest.fixture(scope="package")
def shared() -> Iterator[KalshiSandbox]:
    """A simulation that is not played, for tests that leave nothing behind."""
    with KalshiSandbox(simulate=3, start_ms=START_MS, markets=20, hold=True) as exchange:
        yield exchange


@pytest.fixture(scope="package")
def played() -> Iterator[KalshiSandbox]:
    """The same after five minutes, for tests that only read: all plots have been played."""
    with KalshiSandbox(simulate=11, start_ms=START_MS, markets=40, rate=40, hold=True) as exchange:
        play(exchange, 5 * MINUTE)
        yield exchange


@pytest.fixture(scope="session")
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=60, trust_env=False, verify=tls_context()) as client:
        yield client


def play(sandbox: KalshiSandbox, ms: int) -> None:
    """Play so much of the exchange's time at once."""
    sandbox.call(lambda: sandbox.source.advance(sandbox.source.now_ms + ms, 10**9))


def get(http: httpx.Client, sandbox: KalshiSandbox, path: str, **query: Any) -> Any:
    response = http.get(f"{sandbox.rest_url}{path}", params=query)
    assert response.status_code == 200, response.text
    return response.json()


def walk(http: httpx.Client, sandbox: KalshiSandbox, path: str, name: str, **query: Any) -> list[dict]:
    """Return all pages of a list."""
    found: list[dict] = []
    cursor = ""
    while True:
        page = get(http, sandbox, path, cursor=cursor, **query)
        found += page[name]
        cursor = page["cursor"]
        if cursor == "":
            return found


def truth(http: httpx.Client, sandbox: KalshiSandbox, after: int = 0) -> list[dict]:
    """Return all lines of the truth log after one."""
    found: list[dict] = []
    while lines := http.get(f"{sandbox.url}/sandbox/log", params={"after": after}).text.splitlines():
        found += [json.loads(line) for line in lines]
        after = found[-1]["n"]
    return found


class Signer:
    """A key of the sandbox, and the headers that are signed with it."""

    def __init__(self, sandbox: KalshiSandbox, http: httpx.Client, kind: str = "ed25519") -> None:
        made = http.post(f"{sandbox.url}/sandbox/keys", json={"kind": kind}).json()
        self.id, self.pem = made["api_key_id"], made["private_key"]
        self._key: Any = load_pem_private_key(self.pem.encode(), None)

    def headers(self, path: str, method: str = "GET", at_s: float | None = None) -> dict[str, str]:
        timestamp = str(int((time.time() if at_s is None else at_s) * 1000))
        text = f"{timestamp}{method}{path}".encode()
        if isinstance(self._key, rsa.RSAPrivateKey):
            pss = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=32)
            signature = self._key.sign(text, pss, hashes.SHA256())
        else:
            signature = self._key.sign(text)
        return {
            "KALSHI-ACCESS-KEY": self.id,
            "KALSHI-ACCESS-TIMESTAMP": timestamp,
            "KALSHI-ACCESS-SIGNATURE": base64.b64encode(signature).decode(),
        }


class KalshiListener:
    """One connection: what it has received, and the books that follow from it."""

    def __init__(self, socket: websockets.ClientConnection, sandbox: KalshiSandbox) -> None:
        self.socket, self.sandbox = socket, sandbox
        self.messages: list[dict] = []
        self._identity = 1_000

    async def say(self, cmd: str, identity: int = 0, **params: Any) -> None:
        await self.socket.send(json.dumps({"id": identity, "cmd": cmd, "params": params}))

    async def listen(self, enough: Callable[[], object]) -> None:
        """Receive until `enough()`."""
        while not enough():
            frame = str(await asyncio.wait_for(self.socket.recv(), PATIENCE_S))
            assert frame.endswith("}\n")
            self.messages.append(json.loads(frame))

    async def ask(self, cmd: str, **params: Any) -> dict:
        """Send a command, and return its first answer."""
        self._identity += 1
        identity = self._identity
        await self.say(cmd, identity, **params)
        await self.listen(lambda: any(message.get("id") == identity for message in self.messages))
        return next(message for message in self.messages if message.get("id") == identity)

    async def subscribe(self, *channels: str, **params: Any) -> dict:
        return await self.ask("subscribe", channels=list(channels), **params)

    async def settle(self) -> None:
        """Receive all that the sandbox has sent by now."""
        await asyncio.to_thread(until, lambda: self.sandbox.call(self.sandbox.hub.backlog) == 0)
        await self.ask("list_subscriptions")

    async def play(self, ms: int) -> None:
        """Play so much of the exchange's time, and receive what is sent in it."""
        await asyncio.to_thread(play, self.sandbox, ms)
        await self.settle()

    def of(self, *kinds: str) -> list[dict]:
        return [message for message in self.messages if message["type"] in kinds]

    def books(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the books that snapshots and changes add up to, as text of price to size, by market and side."""
        found: dict[str, dict[str, dict[str, float]]] = {}
        for message in self.of("orderbook_snapshot", "orderbook_delta"):
            msg = message["msg"]
            if message["type"] == "orderbook_snapshot":
                found[msg["market_ticker"]] = {
                    side: {price: float(size) for price, size in msg.get(f"{side}_dollars_fp", ())}
                    for side in ("yes", "no")
                }
                continue
            levels = found[msg["market_ticker"]][msg["side"]]
            left = round(levels.get(msg["price_dollars"], 0) + float(msg["delta_fp"]), 2)
            assert left >= 0
            levels[msg["price_dollars"]] = left
            if not left:
                del levels[msg["price_dollars"]]
        return found


def converse(
    sandbox: KalshiSandbox, http: httpx.Client, conversation: Callable[[KalshiListener], Any]
) -> KalshiListener:
    """Connect, run a conversation, and return the listener with all it received."""
    signer = Signer(sandbox, http)

    async def run() -> KalshiListener:
        async with websockets.connect(
            sandbox.socket_url,
            additional_headers=signer.headers("/trade-api/ws/v2"),
            max_size=1 << 26,
            proxy=None,
            close_timeout=0.5,
        ) as socket:
            listener = KalshiListener(socket, sandbox)
            await conversation(listener)
            return listener

    return asyncio.run(run())


def open_tickers(http: httpx.Client, sandbox: KalshiSandbox, most: int = 10) -> list[str]:
    """Return the busiest open markets."""
    found = walk(http, sandbox, "/markets", "markets", status="open", mve_filter="exclude")
    return [market["ticker"] for market in sorted(found, key=lambda one: -float(one["volume_fp"]))][:most]


def rest_books(
    http: httpx.Client, sandbox: KalshiSandbox, tickers: list[str]
) -> dict[str, dict[str, dict[str, float]]]:
    """Return books of now, in the listener's form."""
    books = get(http, sandbox, "/markets/orderbooks", tickers=tickers)["orderbooks"]
    return {
        book["ticker"]: {
            side: {price: float(size) for price, size in book["orderbook_fp"][f"{side}_dollars"]}
            for side in ("yes", "no")
        }
        for book in books
    }
