"""Sandbox server: the whole exchange on one port, as a process of its own or in a thread of a test."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.routing import Mount, WebSocketRoute

from upstream.sandbox.chain.chain import Chain
from upstream.sandbox.common.faulty_http import FaultyHttp
from upstream.sandbox.common.pace import Pace
from upstream.sandbox.common.server import EventSource, SandboxServer
from upstream.sandbox.common.sockets import MAX_QUEUE
from upstream.sandbox.exchange.exchange import SandboxExchange
from upstream.sandbox.faults import RPC, SOCKET, Fault, Faults
from upstream.sandbox.routes.chain import ChainApi
from upstream.sandbox.routes.clob import ClobApi
from upstream.sandbox.routes.control import ControlApi
from upstream.sandbox.routes.data import DataApi
from upstream.sandbox.routes.gamma import GammaApi
from upstream.sandbox.routes.market_channel import MAX_TOKENS, SocketHub
from upstream.sandbox.routes.price_history import History
from upstream.sandbox.routes.throttle import PUBLISHED, Throttle
from upstream.sandbox.simulation.past import SimulatedPast
from upstream.sandbox.simulation.simulation import Burst, Simulation
from upstream.sandbox.tape.playback import Playback

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from upstream.sandbox.exchange.wire import Fact


class Sandbox(SandboxServer):
    """A sandbox exchange on a local port.

        with Sandbox(simulate=7) as exchange:
            httpx.get(f"{exchange.gamma_url}/markets/keyset")

    `simulate` is a seed, `tape` a folder of recordings; exactly one is given. `rate` and `markets` apply to a
    simulation, `speed` to a tape: 2 plays twice as fast, 0 as fast as possible. With `hold` nothing is played until
    `play()`. A simulation has `past_days` of history, which end where it starts, or at `past_until_ms`. With `limits`
    HTTP requests are limited as the exchange limits them.
    """

    faults: Faults
    hub: SocketHub

    def __init__(
        self,
        *,
        simulate: int | None = None,
        tape: Path | str | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        speed: float = 1.0,
        rate: float = 200,
        markets: int = 60,
        start_ms: int | None = None,
        past_days: int = 0,
        past_until_ms: int | None = None,
        faults: Sequence[Fault] = (),
        bursts: Sequence[Burst] = (),
        log: Path | str | None = None,
        queue_size: int = MAX_QUEUE,
        max_tokens: int = MAX_TOKENS,
        hold: bool = False,
        limits: bool = False,
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
            plan=Faults,
            script=faults,
        )
        self.hub = SocketHub(self.faults, self._record, queue_size=queue_size, max_tokens=max_tokens)
        self.exchange = SandboxExchange(self.log, self.hub)
        self.hub.books = self.exchange
        self.history = History(self.exchange)
        self.past: SimulatedPast | None = None
        self.simulation: Simulation | None = None
        start = self.start_ms
        self.chain = Chain(self.exchange, simulate or 0, start, self._chain_ms)
        self.rpc = ChainApi(self.chain, self.faults)
        self.data_api = DataApi(self.exchange, self.chain.portfolios)
        self.hub.on_fault.append(self._apply_fault)
        population = self.chain.population
        if simulate is not None:
            held = self.chain.portfolios.held
            self.source = self.simulation = simulation = Simulation(
                self.exchange,
                seed=simulate,
                start_ms=start,
                markets=markets,
                rate=rate,
                population=population,
                held=held,
                bursts=bursts,
            )
            self.pace = Pace(simulation, progress)
            if past_days:
                self._remember(simulation, past_days, start if past_until_ms is None else min(past_until_ms, start))
        else:
            assert tape is not None
            self.source = self.playback = Playback(
                self.exchange, Path(tape), start_ms=start, speed=speed, progress=progress, population=population
            )
        self._sampled = -1
        self.throttle = Throttle(self._app(), PUBLISHED if limits else {})
        self.app = FaultyHttp(self.throttle, self.faults, self._stopping)

    def _remember(self, simulation: Simulation, days: int, end_ms: int) -> None:
        """Make the past of a simulation, and register it with everything that serves it."""
        past = SimulatedPast(
            self.exchange.catalogue,
            self.chain.population,
            seed=simulation.seed,
            end_ms=end_ms,
            days=days,
            running=simulation.opened,
        )
        self.past = self.history.past = self.chain.past = self.data_api.past = past

    # --- Addresses ---

    @property
    def gamma_url(self) -> str:
        """The base URL of the Gamma API."""
        return f"{self.url}/gamma"

    @property
    def clob_url(self) -> str:
        """The base URL of the CLOB API."""
        return f"{self.url}/clob"

    @property
    def data_api_url(self) -> str:
        """The base URL of the Data API."""
        return f"{self.url}/data"

    @property
    def socket_url(self) -> str:
        """The URL of the market channel."""
        return f"ws://{self.host}:{self.port}{SOCKET}"

    @property
    def rpc_url(self) -> str:
        """The URL of the chain's JSON-RPC node."""
        return f"{self.url}{RPC}"

    def burst(self, burst: Burst) -> None:
        """Plan a burst of a simulation; call it in the sandbox's own thread."""
        if self.simulation is None:
            raise LookupError("no simulation is played")
        self.simulation.plan(burst)

    # --- The application ---

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                Mount("/gamma", routes=GammaApi(self.exchange).routes()),
                Mount("/clob", routes=ClobApi(self.exchange, self.history).routes()),
                Mount("/data", routes=self.data_api.routes()),
                *self.rpc.routes(),
                Mount("/sandbox", routes=ControlApi(self).routes()),
                WebSocketRoute(SOCKET, self.hub.serve),
            ],
            lifespan=self._lifespan,
        )

    def keep_house(self) -> None:
        """Mine blocks, and sample prices once a minute."""
        self.chain.mine()
        minute = self.exchange.now_ms // 60_000
        if minute != self._sampled:
            self._sampled = minute
            self.history.sample()

    def _chain_ms(self) -> float:
        """Return the chain's time: the exchange's, or real time where that has stopped, as after a tape's end."""
        now_ms = self.exchange.now_ms
        source: EventSource | None = getattr(self, "source", None)
        if source is not None and self._playing.is_set() and (source.ended or self._unpaced):
            return max(now_ms, source.start_ms + (time.monotonic() - self._began) * 1000)
        return now_ms

    def _apply_fault(self, fault: Fault) -> None:
        if fault.kind == "reorg":
            fault.hits += self.chain.reorganise(fault.depth)
            self.faults.stop(fault.id)

    def _record(self, fact: Fact) -> None:
        fact.ts_ms = self.exchange.now_ms
        self.log.write(fact)

    def status(self) -> dict[str, Any]:
        """Return what is played, its progress, and the subscribers."""
        exchange = self.exchange
        return {
            **self.state(),
            "clock_ms": exchange.now_ms,
            **exchange.catalogue.counts,
            "trades": exchange.trades.total,
            "messages": dict(exchange.messages),
            "chain": self.chain.state(),
            "past": None if self.past is None else self.past.state(),
            "requests": dict(self.throttle.counts),
            "sockets": self.hub.state(),
        }
