"""The server's metrics, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.endpoints.base.resource import Reading
from api.errors import Problem

if TYPE_CHECKING:
    import falcon

    from api.endpoints.service.exposition import Metrics
    from api.schemas.requests import Parameters


class MetricsPage(Reading):
    """Metrics of all workers of the server, whichever is asked."""

    metrics: Metrics  # made once the table is whole

    def admit(self, req: falcon.Request) -> Any:
        """Let in who may read them: anyone, unless it is said who."""
        service = self.service
        origin = service.proxies.origin(req.remote_addr or "", req.get_header("X-Forwarded-For"))
        if service.metrics_readers and origin not in service.metrics_readers:
            raise Problem("forbidden", "The metrics are not open to this address")
        return self.given(req)

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Give them."""
        return self.metrics.text()
