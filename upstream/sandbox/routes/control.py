"""The sandbox Polymarket's own endpoints: those of every sandbox, and bursts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from upstream.sandbox.common.answers import RefusedError, route
from upstream.sandbox.common.control import Controlled, SandboxControl
from upstream.sandbox.simulation.simulation import Burst

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route


class Sandbox(Controlled, Protocol):
    """Parts of the sandbox that can be controlled."""

    def burst(self, burst: Burst) -> None:
        """Plan a burst; LookupError if no simulation is played."""


class ControlApi(SandboxControl):
    """Endpoints to inspect the sandbox and inject faults."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        self._sandbox = sandbox

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [*super().routes(), route("/burst", self.burst, ("POST",))]

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
