"""The Prometheus metrics endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.endpoints.base.resource import ReadResource
from api.errors import Problem

if TYPE_CHECKING:
    import falcon

    from api.endpoints.service.exposition import MetricsCollector
    from api.schemas.requests import Parameters


class MetricsPage(ReadResource):
    """Metrics of all workers of the server, whichever one is scraped."""

    metrics: MetricsCollector  # set after all routes are built

    def admit(self, req: falcon.Request) -> Any:
        """Check the client's address: anyone may read the metrics unless readers are configured."""
        service = self.service
        origin = service.proxies.origin(req.remote_addr or "", req.get_header("X-Forwarded-For"))
        if service.metrics_readers and origin not in service.metrics_readers:
            raise Problem("forbidden", "This address may not read the metrics")
        return self.parse(req)

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Return the metrics."""
        return self.metrics.text()
