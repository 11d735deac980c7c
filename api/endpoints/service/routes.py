"""Routes of the service itself: health, time, totals, status, metrics and documents."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.service.metrics import MetricsPage
from api.endpoints.service.requests import StatsParameters
from api.endpoints.service.resource import (
    HealthCheck,
    OpenApiDocument,
    PipelineStatus,
    PlatformTotals,
    ReferenceDocument,
    ServerClock,
)
from api.schemas import records
from sql.queries import markets, pipeline

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="health",
        path="/health",
        resource=HealthCheck,
        answers=records.Health,
        key="none",
        credits=0,
        tag="Service",
        summary="Health check",
        description="Succeeds while this process serves, and fails with 503 when it is about to stop, so that a load "
        "balancer chooses another; `/v1/status/pipeline` reports whether the data is fresh.",
    ),
    Endpoint(
        name="time",
        path="/v1/time",
        resource=ServerClock,
        answers=records.Time,
        credits=0,
        tag="Service",
        summary="Server time",
    ),
    Endpoint(
        name="stats",
        path="/v1/stats",
        resource=PlatformTotals,
        query=markets.platform,
        parameters=StatsParameters,
        answers=records.PlatformStats,
        cache_s=30,
        tag="Service",
        summary="Totals of an exchange",
    ),
    Endpoint(
        name="pipeline_status",
        path="/v1/status/pipeline",
        resource=PipelineStatus,
        query=pipeline.status,
        answers=records.Pipeline,
        credits=0,
        cache_s=1,
        tag="Service",
        summary="Freshness of each pipeline stage",
        description="Computed on request from each stage's latest data: a stage that stops becomes late, then stale.",
    ),
    Endpoint(
        name="openapi",
        path="/openapi.json",
        resource=OpenApiDocument,
        answers=dict,
        example={"openapi": "3.1.0", "info": {"title": "Presage", "version": "1.0.0"}, "paths": {}},
        key="none",
        credits=0,
        tag="Service",
        summary="OpenAPI document",
    ),
    Endpoint(
        name="reference",
        path="/docs",
        resource=ReferenceDocument,
        answers=str,
        media="text/html; charset=utf-8",
        key="none",
        credits=0,
        tag="Service",
        summary="API reference page",
        description="Self-contained. Can send test requests with a key that is kept only in the browser tab.",
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
        summary="Prometheus metrics of this server",
        description="Of all worker processes. The operator can restrict which addresses may read them.",
    ),
)
