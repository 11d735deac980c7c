"""Resources of the service itself: health, time, status, totals and documents."""

from __future__ import annotations

import os
import socket
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import msgspec

from api.data import cache_server
from api.endpoints.base.resource import ReadResource
from api.errors import Problem
from config.exchanges import EXCHANGES

if TYPE_CHECKING:
    import falcon

    from api.endpoints.service.requests import StatsParameters
    from api.schemas.requests import Parameters
    from api.server.middleware import ApiResponse

INDIA = timezone(timedelta(hours=5, minutes=30))


class HealthCheck(ReadResource):
    """Whether this process serves and is not about to stop; it queries nothing else."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Return the process's identity and time."""
        if self.service.draining:
            raise Problem("overloaded", "This process is about to stop", headers={"Retry-After": "1"})
        return msgspec.json.encode(
            {
                "status": "ok",
                "service": "api",
                "project": "presage",
                "instance": f"{socket.gethostname()}:{os.getpid()}",
                "timestamp": int(time.time()),
            }
        )


class ServerClock(ReadResource):
    """The server's clock."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Return the time in several formats."""
        now = datetime.now(UTC)
        return msgspec.json.encode(
            {
                "utc": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "ist": now.astimezone(INDIA).isoformat(timespec="milliseconds"),
                "unix": int(now.timestamp()),
                "unix_ms": int(now.timestamp() * 1000),
                "note": "The clock is UTC. Titles and windows of the exchange's markets are in US Eastern Time.",
            }
        )


class PipelineStatus(ReadResource):
    """Freshness of each pipeline stage."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Return the status of every stage."""
        return self.required(self.read(redis_up=cache_server.is_up(self.service.redis_url)))


class PlatformTotals(ReadResource):
    """Totals of an exchange."""

    def answer(self, given: StatsParameters, **path: str) -> bytes:
        """Return the totals."""
        exchange = EXCHANGES[given.exchange]
        stage = exchange.own("ingestion")
        return self.required(self.read(exchange=exchange.name, stage=stage, has_chain=exchange.has_chain))


class OpenApiDocument(ReadResource):
    """The OpenAPI document."""

    text: bytes = b"{}"  # set after all routes are built

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Return the document."""
        return self.text

    def on_get(self, req: falcon.Request, resp: ApiResponse, **path: str) -> None:
        """Send the document, publicly cacheable for five minutes."""
        super().on_get(req, resp, **path)
        resp.set_header("Cache-Control", "public, max-age=300")


class ReferenceDocument(OpenApiDocument):
    """The API reference page, with a form to try each endpoint."""

    policy = "default-src 'none'"  # replaced by the page's own policy

    def on_get(self, req: falcon.Request, resp: ApiResponse, **path: str) -> None:
        """Send the page with a strict Content-Security-Policy."""
        super().on_get(req, resp, **path)
        resp.set_header("Content-Security-Policy", self.policy)
        resp.set_header("X-Content-Type-Options", "nosniff")
        resp.set_header("Referrer-Policy", "no-referrer")
