"""Server of a sandbox: a whole exchange on one port, as a process of its own or in a thread of a test."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import uvicorn

from upstream.sandbox.common.frames import FrameProtocol
from upstream.sandbox.common.truth_log import TruthLog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from types import TracebackType

    from starlette.applications import Starlette
    from starlette.types import ASGIApp

    from upstream.sandbox.common.faults import FaultPlan, PlannedFault
    from upstream.sandbox.common.pace import Pace
    from upstream.sandbox.common.sockets import ConnectionHub

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


class Recordings(Protocol):
    """What was read from a folder of recordings."""

    def account(self) -> dict[str, Any]:
        """Return per file what was used of it, or why nothing was."""

    def lines(self) -> Iterable[str]:
        """Return the account as lines of text."""


class RecordedSource(EventSource, Protocol):
    """A tape: it begins when it is played, and 0 as its speed is as fast as possible."""

    speed: float

    @property
    def tape(self) -> Recordings: ...

    def begin(self, start_ms: int) -> None: ...


class SandboxServer(ABC):
    """A sandbox exchange on a local port, whatever the exchange.

    A subclass sets `app`, `hub`, `source`, and of the last two what it has: `pace` of a simulation, `playback` of a
    tape. Either a seed to `simulate` or a folder as `tape` is given. With `hold` nothing is played until `play()`.
    """

    app: ASGIApp
    hub: ConnectionHub[Any]
    source: EventSource

    def __init__(
        self,
        *,
        simulate: int | None,
        tape: Path | str | None,
        host: str,
        port: int,
        start_ms: int | None,
        hold: bool,
        log: Path | str | None,
        plan: Callable[[Callable[[], float], int], FaultPlan[Any]],
        script: Iterable[PlannedFault],
    ) -> None:
        if (simulate is None) == (tape is None):
            raise ValueError("either a seed to simulate or a tape to play")
        self.log = TruthLog(Path(log) if log else None)
        self.faults = plan(time.monotonic, simulate or 0)
        self.pace: Pace | None = None
        self.playback: RecordedSource | None = None
        self.host, self.port = host, port
        self.start_ms = int(time.time() * 1000) if start_ms is None else start_ms
        self.late_ms = 0.0
        self.most_late_ms = 0.0
        self._script = list(script)
        self._began = time.monotonic()
        self._playing = asyncio.Event()
        self._hold = hold
        self._now_is_start = start_ms is None
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: BaseException | None = None

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://{self.host}:{self.port}"

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

    def _stopping(self) -> bool:
        return self._server is not None and self._server.should_exit

    # --- Playing ---

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
        elif self.playback is not None:
            self._began = time.monotonic()
            self.playback.begin(int(time.time() * 1000))
        while not self.source.ended:
            if self._unpaced and self.hub.backlog() > self.hub.queue_size // 4:
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

    @property
    def _unpaced(self) -> bool:
        return self.playback is not None and self.playback.speed == 0

    async def _housekeeping(self) -> None:
        while True:
            self.hub.tick()
            self.keep_house()
            self.log.flush()
            await asyncio.sleep(HOUSEKEEPING_S)

    @abstractmethod
    def status(self) -> dict[str, Any]:
        """Return what is played, its progress, `markets` and other counts, and the subscribers."""

    def keep_house(self) -> None:  # noqa: B027 - a hook that not every exchange needs
        """Do what is due ten times a second."""

    def state(self) -> dict[str, Any]:
        """Return what is played, and its progress, as JSON."""
        return {
            "source": self.source.source,
            "start_ms": self.source.start_ms,
            "uptime_s": round(time.monotonic() - self._began, 3),
            "playing": self._playing.is_set(),
            "ended": self.source.ended,
            "late_ms": round(self.late_ms, 1),
            "most_late_ms": round(self.most_late_ms, 1),
            "pace": None if self.pace is None else self.pace.state(),
            "log": {"lines": self.log.n, "kinds": dict(self.log.counts)},
            "faults": self.faults.state(),
            "played": self.source.state(),
        }
