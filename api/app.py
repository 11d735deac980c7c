"""Builds the Falcon application from the endpoint table and the settings."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import falcon
import psycopg

from api import errors
from api.data import pool, waiting
from api.data.pool import Pool, PoolCounters
from api.data.proxy import ExchangeProxy
from api.endpoints.base.methods import merge_methods
from api.endpoints.service.exposition import MetricsCollector
from api.endpoints.service.metrics import MetricsPage
from api.endpoints.service.resource import OpenApiDocument, ReferenceDocument
from api.endpoints.table import ENDPOINTS
from api.metering import ledger_location
from api.metering.ledger_location import LazyLedger
from api.metrics.counts import Counter
from api.metrics.slots import EndpointSlots
from api.openapi import document as openapi
from api.openapi.page import ReferencePage
from api.server import connections, host, worker
from api.server.address import Networks, Proxies
from api.server.connections import Connections
from api.server.middleware import ApiResponse, ResponseMiddleware
from api.service import Service
from api.stream.hub import StreamHub
from config import settings
from upstream.transport.addresses import networks

if TYPE_CHECKING:
    from api.endpoints.base.resource import Resource
    from config.settings import Settings

App = falcon.App[falcon.Request, falcon.Response]


def create_app(service: Service) -> App:
    """Return the WSGI application with a route for each endpoint."""
    slots = EndpointSlots((endpoint.name, endpoint.method, endpoint.path) for endpoint in ENDPOINTS)
    middleware: list[Any] = [ResponseMiddleware(service.meter, service.host.counts, slots)]
    app = falcon.App(middleware=middleware, response_type=ApiResponse)
    app.req_options.strip_url_path_trailing_slash = True
    errors.install(app)
    app.add_error_handler(psycopg.Error, _database_failed)
    at: dict[str, list[Resource]] = {}
    for endpoint in ENDPOINTS:
        resource = endpoint.resource(endpoint, service)
        if isinstance(resource, ReferenceDocument):
            page = reference()
            resource.text, resource.policy = page.html, page.policy
        elif isinstance(resource, OpenApiDocument):
            resource.text = openapi.encoded()
        if isinstance(resource, MetricsPage):
            resource.metrics = MetricsCollector(service, slots)
        at.setdefault(endpoint.path, []).append(resource)
    for path, resources in at.items():
        app.add_route(path, merge_methods(resources))
    return app


@cache
def reference() -> ReferencePage:
    """Return the API reference page, rendered once."""
    return ReferencePage(openapi.document())


def _database_failed(req: falcon.Request, resp: falcon.Response, error: psycopg.Error, params: dict[str, Any]) -> None:
    """Answer a transient database error with 503, any other with 500."""
    if (problem := pool.problem_for(error)) is not None:
        raise problem
    errors.unexpected(req, resp, error, params)


def build_service(given: Settings) -> Service:
    """Return the service that the settings describe."""
    if given.database_url is None:
        raise LookupError("DATABASE_URL is not set: `presage up` sets it for the embedded database")
    url = given.database_url.get_secret_value()
    read_url = (given.database_read_url or given.database_url).get_secret_value()
    limits: dict[str, str | int] = {
        "statement_timeout": given.api_statement_timeout_ms,
        "idle_in_transaction_session_timeout": 10_000,
    }
    read_only = {**limits, "default_transaction_read_only": "on"}
    counts = host.shared.counts
    reads = Pool(read_url, given.api_pool, read_only, counters=PoolCounters(counts, Counter.READS_BUSY))
    events = Pool(read_url, 3, read_only, counters=PoolCounters(counts, Counter.EVENTS_BUSY))
    writes = Pool(url, max(2, given.api_pool // 4), limits, counters=PoolCounters(counts, Counter.WRITES_BUSY))
    ledger = LazyLedger(lambda: ledger_location.open_host_ledger(writes, ledger_location.folder(given)))
    return Service(
        reads=reads,
        writes=writes,
        hub=StreamHub(
            events, ledger.ended, poll_ms=given.stream_poll_ms, queue_bytes=given.stream_queue_bytes, counts=counts
        ),
        host=host.shared,
        connections=Connections.at(
            lambda: writes.read(
                lambda conn: ledger_location.path(conn, ledger_location.folder(given), connections.FILE_KIND)
            )
        ),
        ledger=ledger,
        stream_origins=frozenset(given.stream_origins.lower().replace(",", " ").split()),
        registrations_a_day=given.registrations_a_day,
        proxies=Proxies(given.trusted_proxies),
        metrics_readers=Networks(given.metrics_readers),
        redis_url=given.redis_url.get_secret_value() if given.redis_url else None,
        debug_token=given.debug_token.get_secret_value() if given.debug_token else None,
        webhook_networks=networks(given.webhook_networks),
        exports=given.exports_folder,
        exchange=ExchangeProxy(given.gamma_url, given.data_api_url, source=given.source),
    )


@cache
def _app() -> App:
    waiting.install()
    service = build_service(settings.get())
    service.host.counts.join()
    worker.on_shutdown += [service.hub.stop, service.replays.stop]
    worker.on_drained.append(service.close)
    return create_app(service)


def __getattr__(name: str) -> App:
    """Create `app` on first access, so that importing this module needs no database."""
    if name == "app":
        return _app()
    raise AttributeError(name)
