"""The sandbox exchange in a process of its own: what it has sent, and its catalogue read by the product's discovery."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from cli.stack.plan import ROOT
from cli.stack.processes.program import Program, StartError
from cli.stack.readiness import answers
from upstream.polymarket.gamma.client import Gamma
from upstream.transport.http import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import psycopg

    from upstream.polymarket.gamma.client import GammaMarket
    from upstream.transport.pages import CursorPage

ANSWER_S = 60.0
PACED = ("price_change", "last_trade_price")  # the messages that its rate is about: others follow from them
ADDRESS = re.compile(r"http://[\d.]+:\d+")


class Sent(NamedTuple):
    """What the exchange has sent up to an instant of its clock."""

    clock_ms: int
    messages: int
    paced: int


class Exchange:
    """A simulated exchange: its process and its own figures."""

    def __init__(
        self, folder: Path, progress: Callable[[str], None], *, rate: float, markets: int, ready_within_s: float
    ) -> None:
        self.log = folder / "sent.jsonl"  # every event, as the exchange sent it
        command = [sys.executable, "-m", "upstream.sandbox", "--port", "0", "--hold", "--log", str(self.log)]
        self.program = Program(
            "exchange",
            [*command, "--simulate", "1", "--rate", str(rate), "--markets", str(markets)],
            folder / "exchange.log",
            directory=ROOT,
            is_ready=self._is_ready,
            ready_within_s=ready_within_s,
        )
        self._progress = progress

    @property
    def url(self) -> str:
        """The base URL, once it is ready."""
        found = self._address()
        assert found is not None
        return found

    def environment(self) -> dict[str, str]:
        """Return the settings with which the product reads this exchange."""
        return {
            "PRESAGE_GAMMA_URL": f"{self.url}/gamma",
            "PRESAGE_CLOB_URL": f"{self.url}/clob",
            "PRESAGE_DATA_API_URL": f"{self.url}/data",
            "PRESAGE_CLOB_SOCKET_URL": f"{self.url.replace('http', 'ws', 1)}/ws/market",
            "PRESAGE_SOURCE": "simulated",
        }

    def sent(self) -> Sent:
        """Return what it has sent by now."""
        status = self._ask("GET", "status")
        messages = status["messages"]
        return Sent(status["clock_ms"], sum(messages.values()), sum(messages.get(kind, 0) for kind in PACED))

    def open_markets(self) -> int:
        """Return the number of its markets that are open."""
        return int(self._ask("GET", "status")["open_markets"])

    def play(self) -> None:
        """Begin to trade: it does not before."""
        self._ask("POST", "play")

    def burst(self, times: float, seconds: float) -> None:
        """Trade at many times the rate from now on, for some seconds."""
        self._ask("POST", "burst", {"times": times, "for_s": seconds})

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        try:
            answer = httpx.request(
                method, f"{self.url}/sandbox/{path}", json=body, timeout=ANSWER_S, trust_env=False
            ).raise_for_status()
        except httpx.HTTPError as error:
            raise StartError(f"the exchange does not answer: {error}") from error
        return answer.json()

    def _is_ready(self) -> bool:
        self._progress("the exchange is starting")
        found = self._address()
        return found is not None and answers(f"{found}/sandbox/status")

    def _address(self) -> str | None:
        try:
            found = ADDRESS.search(self.program.log.read_text())
        except OSError:
            return None
        return found and found.group()


class _WatchedGamma(Gamma):
    """A Gamma client that calls back after each page of markets."""

    def __init__(self, url: str, read: Callable[[int], None]) -> None:
        super().__init__(Client(), url)
        self._read = read

    def market_pages(self, cursor: str | None = None, **filters: Any) -> Iterator[CursorPage[GammaMarket]]:
        for page in super().market_pages(cursor, **filters):
            yield page
            self._read(len(page.items))


def discover(conn: psycopg.Connection[Any], gamma_url: str, read: Callable[[int], None]) -> None:
    """Store the catalogue by the product's own discovery; `read` is called with the size of each page."""
    from config import settings
    from orchestration.markets.discovery import Discovery
    from upstream.polymarket.gamma.listings import GammaListings

    simulated = settings.get().model_copy(update={"source": "simulated"})
    Discovery(conn, GammaListings(_WatchedGamma(gamma_url, read)), simulated).scan_open()
