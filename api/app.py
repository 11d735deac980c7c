"""The application: the endpoint table made into routes, on a pool that is handed in."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import falcon
import psycopg

from api import errors
from api.data import pool, waiting
from api.data.pool import Pool, Told
from api.data.proxy import Exchange
from api.endpoints.base.methods import together
from api.endpoints.service.exposition import Metrics
from api.endpoints.service.metrics import MetricsPage
from api.endpoints.service.resource import Document, Reference
from api.endpoints.table import ENDPOINTS
from api.metering import ledger_location as ledgers
from api.metering.ledger_location import Opener
from api.metrics.counts import Number
from api.metrics.slots import EndpointSlots
from api.openapi import document as openapi
from api.openapi.page import Page
from api.server import connections, host, worker
from api.server.address import Networks, Proxies
from api.server.connections import Connections
from api.server.middleware import Answer, EveryAnswer
from api.service import Service
from api.stream.hub import Hub
from config import settings
from upstream.transport.addresses import networks

if TYPE_CHECKING:
    from api.endpoints.base.resource import Resource
    from config.settings import Settings

App = falcon.App[falcon.Request, falcon.Response]


def create_app(service: Service) -> App:
    """Put the service behind its routes."""
    slots = EndpointSlots((endpoint.name, endpoint.method, endpoint.path) for endpoint in ENDPOINTS)
    middleware: list[Any] = [EveryAnswer(service.meter, service.host.counts, slots)]
    app = falcon.App(middleware=middleware, response_type=Answer)
    app.req_options.strip_url_path_trailing_slash = True
    errors.install(app)
    app.add_error_handler(psycopg.Error, _database_failed)
    at: dict[str, list[Resource]] = {}
    for endpoint in ENDPOINTS:
        resource = endpoint.resource(endpoint, service)
        if isinstance(resource, Reference):
            page = reference()
            resource.text, resource.policy = page.html, page.policy
        elif isinstance(resource, Document):
            resource.text = openapi.encoded()
        if isinstance(resource, MetricsPage):
            resource.metrics = Metrics(service, slots)
        at.setdefault(endpoint.path, []).append(resource)
    for path, resources in at.items():
        app.add_route(path, together(resources))
    return app


@cache
def reference() -> Page:
    """Write the reference page."""
    return Page(openapi.document())


def _database_failed(req: falcon.Request, resp: falcon.Response, error: psycopg.Error, params: dict[str, Any]) -> None:
    """Tell what may work again from what is our mistake."""
    if (problem := pool.answer(error)) is not None:
        raise problem
    errors.unexpected(req, resp, error, params)


def service_of(given: Settings) -> Service:
    """Put together what the settings name."""
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
    reads = Pool(read_url, given.api_pool, read_only, told=Told(counts, Number.READS_BUSY))
    events = Pool(read_url, 3, read_only, told=Told(counts, Number.EVENTS_BUSY))
    writes = Pool(url, max(2, given.api_pool // 4), limits, told=Told(counts, Number.WRITES_BUSY))
    ledger = Opener(lambda: ledgers.of_host(writes, ledgers.folder(given)))
    return Service(
        reads=reads,
        writes=writes,
        hub=Hub(
            events, ledger.ended, poll_ms=given.stream_poll_ms, queue_bytes=given.stream_queue_bytes, counts=counts
        ),
        host=host.shared,
        connections=Connections.at(
            lambda: writes.read(lambda conn: ledgers.path(conn, ledgers.folder(given), connections.HOLDS))
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
        exchange=Exchange(given.gamma_url, given.data_api_url, source=given.source),
    )


@cache
def _app() -> App:
    waiting.install()
    service = service_of(settings.get())
    service.host.counts.join()
    worker.farewells += [service.hub.stop, service.replays.stop]
    worker.last_words.append(service.close)
    return create_app(service)


def __getattr__(name: str) -> App:
    """Make `app` when a server asks for it, so that importing this module needs no database."""
    if name == "app":
        return _app()
    raise AttributeError(name)
