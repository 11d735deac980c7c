"""Builds the Falcon application from the endpoint table."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import falcon
import psycopg

from api import errors
from api.data import pool
from api.endpoints.base.methods import merge_methods
from api.endpoints.service.exposition import MetricsCollector
from api.endpoints.service.metrics import MetricsPage
from api.endpoints.service.resource import OpenApiDocument, ReferenceDocument
from api.endpoints.table import ENDPOINTS
from api.metrics.slots import EndpointSlots
from api.openapi import document as openapi
from api.openapi.page import ReferencePage
from api.server.middleware import ApiResponse, ResponseMiddleware
from api.startup import start_service

if TYPE_CHECKING:
    from api.endpoints.base.resource import Resource
    from api.service import Service

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


@cache
def _app() -> App:
    return create_app(start_service())


def __getattr__(name: str) -> App:
    """Create `app` on first access, so that importing this module needs no database."""
    if name == "app":
        return _app()
    raise AttributeError(name)
