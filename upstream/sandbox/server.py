"""Sandbox server: the whole exchange on one port, as a process of its own or in a thread of a test."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount, WebSocketRoute

from upstream.sandbox.chain.chain import Chain
from upstream.sandbox.exchange.exchange import SandboxExchange
from upstream.sandbox.exchange.log import TruthLog
from upstream.sandbox.faults import RPC, SOCKET, Fault, Faults
from upstream.sandbox.routes.chain import ChainApi
from upstream.sandbox.routes.clob import ClobApi
from upstream.sandbox.routes.control import ControlApi
from upstream.sandbox.routes.data import DataApi
from upstream.sandbox.routes.faulty import FaultyHttp
from upstream.sandbox.routes.frames import FrameProtocol
from upstream.sandbox.routes.gamma import GammaApi
from upstream.sandbox.routes.market_channel import MAX_QUEUE, MAX_TOKENS, SocketHub
from upstream.sandbox.routes.price_history import History
from upstream.sandbox.routes.throttle import PUBLISHED, Throttle
from upstream.sandbox.simulation.pace import Pace
from upstream.sandbox.simulation.past import SimulatedPast
from upstream.sandbox.simulation.simulation import Burst, Simulation
from upstream.sandbox.tape.playback import Playback

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from types import TracebackType

    from starlette.websockets import WebSocket

    from upstream.sandbox.exchange.wire import Fact

Result = TypeVar("Result")

ORDERS_A_TURN = 250  # played before other tasks get a turn
REST_S = 0.005
HOUSEKEEPING_S = 0.1


class EventSource(Protocol):
    """Producer of the exchange's events: a simulation, or a tape."""

    source: str
    now_ms: float
    start_ms: int

    @property
    def ended(self) -> bool: ...

    def advance(self, until_ms: float, most: int = ...) -> bool: ...

    def state(self) -> dict[str, Any]: ...


class Sandbox:
    """A sandbox exchange on a local port.

        with Sandbox(simulate=7) as exchange:
            httpx.get(f"{exchange.gamma_url}/markets/keyset")

    `simulate` is a seed, `tape` a folder of recordings; exactly one is given. `rate` and `markets` apply to a
    simulation, `speed` to a tape: 2 plays twice as fast, 0 as fast as possible. With `hold` nothing is played until
    `play()`. A simulation has `past_days` of history, which end where it starts, or at `past_until_ms`. With `limits`
    HTTP requests are limited as the exchange limits them.
    """

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
        if (simulate is None) == (tape is None):
            raise ValueError("either a seed to simulate or a tape to play")
        self.log = TruthLog(Path(log) if log else None)
        self.faults = Faults(time.monotonic, seed=simulate or 0)
        self.hub = SocketHub(self.faults, self._record, queue_size=queue_size, max_tokens=max_tokens)
        self.exchange = SandboxExchange(self.log, self.hub)
        self.history = History(self.exchange)
        self.past: SimulatedPast | None = None
        self.pace: Pace | None = None  # of a simulation
        start = int(time.time() * 1000) if start_ms is None else start_ms
        self._began = time.monotonic()
        self.chain = Chain(self.exchange, simulate or 0, start, self._chain_ms)
        self.rpc = ChainApi(self.chain, self.faults)
        self.data_api = DataApi(self.exchange, self.chain.portfolios)
        self.hub.on_fault.append(self._apply_fault)
        population = self.chain.population
        self.source: EventSource
        if simulate is not None:
            held = self.chain.portfolios.held
            self.source = simulation = Simulation(
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
            self.source = Playback(
                self.exchange, Path(tape), start_ms=start, speed=speed, progress=progress, population=population
            )
        self._playing = asyncio.Event()
        self._hold = hold
        self._now_is_start = start_ms is None
        self._unpaced = tape is not None and speed == 0
        self.late_ms = 0.0
        self.most_late_ms = 0.0
        self.host, self.port = host, port
        self._script = list(faults)
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: BaseException | None = None
        self.throttle = Throttle(self._app(), PUBLISHED if limits else {})
        self.app = FaultyHttp(self.throttle, self.faults, lambda: self._server is not None and self._server.should_exit)

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
    def url(self) -> str:
        """The base URL."""
        return f"http://{self.host}:{self.port}"

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

    # --- Running ---

    def bind(self) -> None:
        """Bind the port; a free one if none was given."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # 400,000 tokens take 800 sockets a subscriber
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((self.host, self.port))
        self._socket.listen(1024)  # from now on connections are accepted, though the first may wait a moment
        self.port = self._socket.getsockname()[1]

    def run(self) -> None:
        """Serve until stopped by a signal."""
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        self._make_server().run(sockets=[self._socket])

    def __enter__(self) -> Self:
        self.bind()
        server = self._make_server()
        self._thread = threading.Thread(target=self._run_in_thread, args=(server,), name="sandbox", daemon=True)
        self._thread.start()
        while not server.started:
            if not self._thread.is_alive():
                raise RuntimeError("the sandbox did not start") from self._failure
            time.sleep(0.005)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join(timeout=10)
        if self._failure is not None:
            raise RuntimeError("the sandbox failed") from self._failure

    def call(self, function: Callable[[], Result]) -> Result:
        """Run a function in the sandbox's own thread, where its state does not change meanwhile."""
        assert self._loop is not None

        async def run() -> Result:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(timeout=30)

    def play(self) -> None:
        """Start playing when held; call it in the sandbox's own thread."""
        self._playing.set()

    def burst(self, burst: Burst) -> None:
        """Plan a burst of a simulation; call it in the sandbox's own thread."""
        if self.pace is None:
            raise LookupError("no simulation is played")
        self.pace.simulation.plan(burst)

    def _run_in_thread(self, server: uvicorn.Server) -> None:
        assert self._socket is not None
        try:
            server.run(sockets=[self._socket])
        except BaseException as error:  # noqa: BLE001 - re-raised in the caller's thread
            self._failure = error

    def _make_server(self) -> uvicorn.Server:
        config = uvicorn.Config(
            self.app,
            log_level="warning",
            access_log=False,
            ws=FrameProtocol,
            ws_per_message_deflate=False,
            ws_ping_interval=None,
            lifespan="on",
            timeout_graceful_shutdown=1,
            server_header=False,
        )
        self._server = uvicorn.Server(config)
        return self._server

    # --- The application ---

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                Mount("/gamma", routes=GammaApi(self.exchange).routes()),
                Mount("/clob", routes=ClobApi(self.exchange, self.history).routes()),
                Mount("/data", routes=self.data_api.routes()),
                *self.rpc.routes(),
                Mount("/sandbox", routes=ControlApi(self).routes()),
                WebSocketRoute(SOCKET, self._serve_socket),
            ],
            lifespan=self._lifespan,
        )

    async def _serve_socket(self, websocket: WebSocket) -> None:
        await self.hub.serve(websocket, self.exchange)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        self.faults.add(self._script)
        if not self._hold:
            self._playing.set()
        tasks = [asyncio.create_task(self._play()), asyncio.create_task(self._housekeeping())]
        for task in tasks:
            task.add_done_callback(self._stop_if_failed)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.log.close()

    def _stop_if_failed(self, task: asyncio.Task[None]) -> None:
        """Stop the server rather than hang when the source fails."""
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
            assert self._server is not None
            self._server.should_exit = True

    async def _play(self) -> None:
        """Advance the source to the clock, repeatedly.

        A tape starts now. A simulation's clock is real time from the first message on, unless it was given one of its
        own, which starts now; what it could not send in time it skips.
        """
        await self._playing.wait()
        if not self._now_is_start:
            self._began = time.monotonic()
        elif isinstance(self.source, Playback):
            self._began = time.monotonic()
            self.source.begin(int(time.time() * 1000))
        while not self.source.ended:
            if (
                isinstance(self.source, Playback)
                and not self.source.speed
                and self.hub.backlog() > self.hub.queue_size // 4
            ):
                await asyncio.sleep(REST_S)  # as fast as possible means as fast as the subscribers
                continue
            now = time.monotonic()
            due_ms = self.source.start_ms + (now - self._began) * 1000
            if self.pace is not None:
                due_ms = time.time() * 1000 if self._now_is_start else due_ms
                self.pace.keep(due_ms, now)
            caught_up = self.source.advance(due_ms, ORDERS_A_TURN)
            self.late_ms = 0.0 if caught_up or self._unpaced else due_ms - self.source.now_ms
            self.most_late_ms = max(self.most_late_ms, self.late_ms)
            await asyncio.sleep(REST_S if caught_up else 0)

    async def _housekeeping(self) -> None:
        sampled = -1
        while True:
            self.hub.tick()
            self.chain.mine()
            self.log.flush()
            minute = self.exchange.now_ms // 60_000
            if minute != sampled:
                sampled = minute
                self.history.sample()
            await asyncio.sleep(HOUSEKEEPING_S)

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
            "source": self.source.source,
            "clock_ms": exchange.now_ms,
            "start_ms": self.source.start_ms,
            "uptime_s": round(time.monotonic() - self._began, 3),
            "playing": self._playing.is_set(),
            "ended": self.source.ended,
            "late_ms": round(self.late_ms, 1),
            "most_late_ms": round(self.most_late_ms, 1),
            "pace": None if self.pace is None else self.pace.state(),
            **exchange.catalogue.counts,
            "trades": exchange.trades.total,
            "messages": dict(exchange.messages),
            "log": {"lines": self.log.n, "kinds": dict(self.log.counts)},
            "chain": self.chain.state(),
            "past": None if self.past is None else self.past.state(),
            "requests": dict(self.throttle.counts),
            "sockets": self.hub.state(),
            "faults": self.faults.state(),
            "played": self.source.state(),
        }
