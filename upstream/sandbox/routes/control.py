"""The sandbox's own endpoints, which the real exchange does not have: status, tape, faults, truth log, clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from starlette.responses import Response

from upstream.sandbox.exchange.log import LineGoneError
from upstream.sandbox.faults import read_script
from upstream.sandbox.routes.answers import route
from upstream.sandbox.routes.paging import RefusedError, whole
from upstream.sandbox.simulation.simulation import Burst
from upstream.sandbox.tape.playback import Playback

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route

    from upstream.sandbox.exchange.log import TruthLog
    from upstream.sandbox.faults import Faults
    from upstream.sandbox.routes.market_channel import SocketHub

LINES = 10_000


class Sandbox(Protocol):
    """Parts of the sandbox that can be controlled."""

    faults: Faults
    hub: SocketHub
    log: TruthLog

    @property
    def source(self) -> object:
        """Return the simulation or the playback that makes events."""

    def status(self) -> dict[str, Any]:
        """Return what the sandbox is doing."""

    def play(self) -> None:
        """Start what is held."""

    def burst(self, burst: Burst) -> None:
        """Plan a burst; LookupError if no simulation is played."""


class ControlApi:
    """Endpoints to inspect the sandbox and inject faults."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            route("/status", lambda _request: self._sandbox.status()),
            route("/tape", self.tape),
            route("/faults", lambda _request: self._sandbox.faults.state()),
            route("/faults", self.plan, ("POST",)),
            route("/faults", lambda _request: {"stopped": self._sandbox.faults.stop()}, ("DELETE",)),
            route(
                "/faults/{id:int}",
                lambda request: {"stopped": self._sandbox.faults.stop(request.path_params["id"])},
                ("DELETE",),
            ),
            route("/log", self.lines),
            route("/play", self.play, ("POST",)),
            route("/burst", self.burst, ("POST",)),
        ]

    def tape(self, _request: Request) -> dict[str, Any]:
        """Return per file of the tape what was used of it, or why nothing was, as data and as lines of text."""
        source = self._sandbox.source
        if not isinstance(source, Playback):
            raise RefusedError(404, {"error": "no tape is played"})
        return source.tape.account() | {"lines": list(source.tape.lines())}

    async def plan(self, request: Request) -> Any:
        """Accept a fault or a list of them; return what was planned, ids included."""
        try:
            script = read_script(await request.body())
        except msgspec.MsgspecError as error:
            raise RefusedError(400, {"error": str(error)}) from error
        added = self._sandbox.faults.add(script)
        self._sandbox.hub.tick()
        return added

    async def burst(self, request: Request) -> Any:
        """Plan a burst of a simulation: many times the rate, in a few sports events, for some seconds."""
        try:
            burst = msgspec.json.decode(await request.body() or b"{}", type=Burst)
            self._sandbox.burst(burst)
        except msgspec.MsgspecError as error:
            raise RefusedError(400, {"error": str(error)}) from error
        except LookupError as error:
            raise RefusedError(404, {"error": str(error)}) from error
        return burst

    def lines(self, request: Request) -> Response:
        """Return lines of the truth log after line `after`."""
        try:
            found = self._sandbox.log.after(
                whole(request.query_params, "after", 0), whole(request.query_params, "limit", LINES, LINES)
            )
        except LineGoneError as error:
            raise RefusedError(410, {"error": str(error)}) from error
        return Response(found, media_type="application/x-ndjson")

    def play(self, _request: Request) -> dict[str, Any]:
        """Start playing when held."""
        self._sandbox.play()
        return {"playing": True}
