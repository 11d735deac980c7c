"""About the service itself: that it lives, what time it has, how fresh its data is."""

from __future__ import annotations

import os
import socket
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import msgspec

from api.data import cache_server
from api.endpoints.base.resource import Reading

if TYPE_CHECKING:
    import falcon

    from api.schemas.requests import Parameters
    from api.server.middleware import Answer

INDIA = timezone(timedelta(hours=5, minutes=30))


class Health(Reading):
    """That this process answers; it asks nobody else."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Say so."""
        return msgspec.json.encode(
            {
                "status": "ok",
                "service": "api",
                "project": "presage",
                "instance": f"{socket.gethostname()}:{os.getpid()}",
                "timestamp": int(time.time()),
            }
        )


class Time(Reading):
    """The server's clock."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Tell the time."""
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


class Pipeline(Reading):
    """How fresh the data is."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Give every stage."""
        return self.found(self.read(redis_up=cache_server.answers(self.service.redis_url)))


class Platform(Reading):
    """One row about everything."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Give the row."""
        return self.found(self.read())


class Document(Reading):
    """The OpenAPI document."""

    text: bytes = b"{}"  # made once the table is whole

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Give the document."""
        return self.text

    def on_get(self, req: falcon.Request, resp: Answer, **path: str) -> None:
        """Give the document, which anyone may keep for a while."""
        super().on_get(req, resp, **path)
        resp.set_header("Cache-Control", "public, max-age=300")


class Reference(Document):
    """The document as a page to be read, and tried."""

    policy = "default-src 'none'"  # what the page needs, once it is made

    def on_get(self, req: falcon.Request, resp: Answer, **path: str) -> None:
        """Give the page, and tell the browser to let it do no more than it needs."""
        super().on_get(req, resp, **path)
        resp.set_header("Content-Security-Policy", self.policy)
        resp.set_header("X-Content-Type-Options", "nosniff")
        resp.set_header("Referrer-Policy", "no-referrer")
