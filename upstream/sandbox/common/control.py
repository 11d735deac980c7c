"""Endpoints that no exchange has: a sandbox's status, faults, truth log, tape and clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from starlette.responses import Response

from upstream.sandbox.common.answers import RefusedError, route
from upstream.sandbox.common.truth_log import LineGoneError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route

    from upstream.sandbox.common.faults import FaultPlan
    from upstream.sandbox.common.server import RecordedSource
    from upstream.sandbox.common.truth_log import TruthLog

LINES = 10_000


class Ticking(Protocol):
    """What starts due faults."""

    def tick(self) -> None:
        """Start due faults."""


class Controlled(Protocol):
    """Parts of a sandbox that can be controlled."""

    @property
    def faults(self) -> FaultPlan[Any]:
        """Return the faults."""

    @property
    def hub(self) -> Ticking:
        """Return the sockets."""

    @property
    def log(self) -> TruthLog:
        """Return the truth log."""

    @property
    def playback(self) -> RecordedSource | None:
        """Return what plays a tape, if one is played."""

    def status(self) -> dict[str, Any]:
        """Return what the sandbox is doing."""

    def play(self) -> None:
        """Start what is held."""


class SandboxControl:
    """Endpoints to inspect a sandbox and inject faults."""

    def __init__(self, sandbox: Controlled) -> None:
        self._controlled = sandbox

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            route("/status", lambda _request: self._controlled.status()),
            route("/faults", lambda _request: self._controlled.faults.state()),
            route("/faults", self.plan, ("POST",)),
            route("/faults", lambda _request: {"stopped": self._controlled.faults.stop()}, ("DELETE",)),
            route(
                "/faults/{id:int}",
                lambda request: {"stopped": self._controlled.faults.stop(request.path_params["id"])},
                ("DELETE",),
            ),
            route("/log", self.lines),
            route("/tape", self.tape),
            route("/play", self.play, ("POST",)),
        ]

    async def plan(self, request: Request) -> Any:
        """Accept a fault or a list of them; return what was planned, ids included."""
        try:
            script = self._controlled.faults.read(await request.body())
        except msgspec.MsgspecError as error:
            raise RefusedError(400, {"error": str(error)}) from error
        added = self._controlled.faults.add(script)
        self._controlled.hub.tick()
        return added

    def lines(self, request: Request) -> Response:
        """Return lines of the truth log after line `after`."""
        after, limit = (_number(request, name, default) for name, default in (("after", 0), ("limit", LINES)))
        try:
            found = self._controlled.log.after(after, min(limit, LINES))
        except LineGoneError as error:
            raise RefusedError(410, {"error": str(error)}) from error
        return Response(found, media_type="application/x-ndjson")

    def tape(self, _request: Request) -> dict[str, Any]:
        """Return per file of the tape what was used of it, or why nothing was, as data and as lines of text."""
        playback = self._controlled.playback
        if playback is None:
            raise RefusedError(404, {"error": "no tape is played"})
        return playback.tape.account() | {"lines": list(playback.tape.lines())}

    def play(self, _request: Request) -> dict[str, Any]:
        """Start playing when held."""
        self._controlled.play()
        return {"playing": True}


def _number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name) or str(default)
    if not given.isdecimal():
        raise RefusedError(400, {"error": f"{name} is invalid"})
    return int(given)
