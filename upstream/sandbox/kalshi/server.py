"""Sandbox Kalshi: REST and WebSocket on one port, as a process of its own or in a thread of a test."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.routing import Mount, WebSocketRoute

from upstream.sandbox.common.answers import RefusedError, route
from upstream.sandbox.common.control import SandboxControl
from upstream.sandbox.common.faulty_http import FaultyHttp
from upstream.sandbox.common.pace import Pace
from upstream.sandbox.common.server import SandboxServer
from upstream.sandbox.common.sockets import MAX_QUEUE
from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
from upstream.sandbox.kalshi.faults import SOCKET, KalshiFault, KalshiFaults
from upstream.sandbox.kalshi.limits import REST, TIERS, Gate, too_many_requests
from upstream.sandbox.kalshi.routes.books import BookRoutes
from upstream.sandbox.kalshi.routes.events import EventRoutes
from upstream.sandbox.kalshi.routes.markets import MarketRoutes
from upstream.sandbox.kalshi.routes.service import ServiceRoutes
from upstream.sandbox.kalshi.routes.trades import TradeRoutes
from upstream.sandbox.kalshi.signatures import KeyRing
from upstream.sandbox.kalshi.simulation.simulation import KalshiSimulation
from upstream.sandbox.kalshi.sockets.hub import MAX_SUBSCRIBED, KalshiHub
from upstream.sandbox.kalshi.tape.playback import KalshiPlayback

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.routing import Route

    from upstream.sandbox.kalshi.signatures import PublicKey


class KalshiSandbox(SandboxServer):
    """A sandbox Kalshi on a local port.

        with KalshiSandbox(simulate=7) as exchange:
            httpx.get(f"{exchange.rest_url}/markets")

    `simulate` is a seed, `tape` a folder of recordings; exactly one is given. `rate` and `markets` apply to a
    simulation, `speed` to a tape. `keys` are public keys by their id; more are made by `POST /sandbox/keys`. With a
    `tier` requests take tokens from its bucket. `clock` is that of signatures, in seconds.
    """

    faults: KalshiFaults
    hub: KalshiHub

    def __init__(
        self,
        *,
        simulate: int | None = None,
        tape: Path | str | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        speed: float = 1.0,
        rate: float = 200,
        markets: int = 200,
        start_ms: int | None = None,
        faults: Sequence[KalshiFault] = (),
        log: Path | str | None = None,
        queue_size: int = MAX_QUEUE,
        max_markets: int = MAX_SUBSCRIBED,
        hold: bool = False,
        keys: Mapping[str, PublicKey] | None = None,
        tier: str | None = None,
        clock: Callable[[], float] = time.time,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(
            simulate=simulate,
            tape=tape,
            host=host,
            port=port,
            start_ms=start_ms,
            hold=hold,
            log=log,
            plan=KalshiFaults,
            script=faults,
        )
        self.keys = KeyRing(keys or {}, clock)
        self.hub = KalshiHub(self.faults, self.keys, queue_size=queue_size, max_markets=max_markets)
        self.exchange = self.hub.exchange = KalshiExchange(self.log, self.hub)
        say = progress or (lambda _line: None)
        if simulate is not None:
            self.source = simulation = KalshiSimulation(
                self.exchange, seed=simulate, start_ms=self.start_ms, markets=markets, rate=rate
            )
            self.pace = Pace(simulation, say)
        else:
            assert tape is not None
            self.source = self.playback = KalshiPlayback(
                self.exchange, Path(tape), start_ms=self.start_ms, speed=speed, progress=say
            )
        known = TIERS["basic" if tier is None else tier]
        self.gate = Gate(self._routes(known), None if tier is None else known, self.keys, self.faults)
        self.app = FaultyHttp(self.gate, self.faults, self._stopping, rate_limited=too_many_requests)

    @property
    def rest_url(self) -> str:
        """The base URL of the REST API."""
        return f"{self.url}{REST}"

    @property
    def socket_url(self) -> str:
        """The URL of the WebSocket."""
        return f"ws://{self.host}:{self.port}{SOCKET}"

    def _routes(self, tier: Any) -> Starlette:
        markets = MarketRoutes(self.exchange)
        rest: list[Route] = [
            *BookRoutes(self.exchange, markets).routes(),
            *TradeRoutes(self.exchange, markets).routes(),
            *markets.routes(),
            *EventRoutes(self.exchange, markets).routes(),
            *ServiceRoutes(self.exchange, tier).routes(),
        ]
        return Starlette(
            routes=[
                Mount(REST, routes=rest),
                Mount("/sandbox", routes=KalshiControl(self).routes()),
                WebSocketRoute(SOCKET, self.hub.serve),
            ],
            lifespan=self._lifespan,
        )

    def status(self) -> dict[str, Any]:
        """Return what is played, its progress, and the subscribers."""
        exchange = self.exchange
        return {
            **self.state(),
            "clock_ms": exchange.now_ms,
            "markets": len(exchange.markets),
            "events": len(exchange.events),
            "series": len(exchange.series),
            "trades": exchange.trades.total,
            "requests": dict(self.gate.counts),
            "sockets": self.hub.state(),
        }


class KeyKind(msgspec.Struct, forbid_unknown_fields=True):
    """The kind of a key to be made."""

    kind: str = "rsa"


class KalshiControl(SandboxControl):
    """Endpoints to inspect the sandbox, inject faults and make API keys."""

    def __init__(self, sandbox: KalshiSandbox) -> None:
        super().__init__(sandbox)
        self._sandbox = sandbox

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [*super().routes(), route("/keys", self.create_key, ("POST",))]

    async def create_key(self, request: Request) -> dict[str, str]:
        """Make an API key; its private half is returned, and not kept."""
        try:
            wanted = msgspec.json.decode(await request.body() or b"{}", type=KeyKind)
            return self._sandbox.keys.create(wanted.kind)
        except ValueError as error:  # msgspec's are ValueErrors, too
            raise RefusedError(400, {"error": str(error)}) from error
