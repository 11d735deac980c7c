"""Routes of the service itself: health, time, status, metrics and documents."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.service.metrics import MetricsPage
from api.endpoints.service.resource import Document, Health, Pipeline, Platform, Reference, Time
from api.schemas import records
from sql.queries import markets, pipeline

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="health",
        path="/health",
        resource=Health,
        answers=records.Health,
        key="none",
        credits=0,
        tag="Service",
        summary="Whether the service lives",
        description="Answers as long as this process does; `/v1/status/pipeline` tells whether its data is fresh.",
    ),
    Endpoint(
        name="time",
        path="/v1/time",
        resource=Time,
        answers=records.Time,
        credits=0,
        tag="Service",
        summary="The server's clock",
    ),
    Endpoint(
        name="stats",
        path="/v1/stats",
        resource=Platform,
        query=markets.platform,
        answers=records.PlatformStats,
        cache_s=30,
        tag="Service",
        summary="Everything, counted",
    ),
    Endpoint(
        name="pipeline_status",
        path="/v1/status/pipeline",
        resource=Pipeline,
        query=pipeline.status,
        answers=records.Pipeline,
        credits=0,
        cache_s=1,
        tag="Service",
        summary="How fresh the data is",
        description="Lateness is computed from each stage's clock when asked: one that stops turns late, then stale.",
    ),
    Endpoint(
        name="openapi",
        path="/openapi.json",
        resource=Document,
        answers=dict,
        example={"openapi": "3.1.0", "info": {"title": "Presage", "version": "1.0.0"}, "paths": {}},
        key="none",
        credits=0,
        tag="Service",
        summary="This document",
    ),
    Endpoint(
        name="reference",
        path="/docs",
        resource=Reference,
        answers=str,
        media="text/html; charset=utf-8",
        key="none",
        credits=0,
        tag="Service",
        summary="This document as a page",
        description="It needs nothing from anywhere else, and tries requests with a key that stays in the tab.",
    ),
    Endpoint(
        name="metrics",
        path="/metrics",
        resource=MetricsPage,
        answers=str,
        media=CONTENT_TYPE_PLAIN_0_0_4,
        key="none",
        credits=0,
        errors=("forbidden",),
        tag="Service",
        summary="Metrics of this server, for Prometheus",
        description="Of all its processes. Whoever runs the service may limit who reads them.",
    ),
)
