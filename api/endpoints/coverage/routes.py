"""Routes of the coverage endpoints."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.coverage import records
from api.endpoints.coverage.requests import CoverageParameters, GapParameters
from api.endpoints.coverage.resource import CoverageResource, MarketCoverageResource

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="coverage",
        path="/v1/coverage",
        resource=CoverageResource,
        parameters=CoverageParameters,
        answers=records.Coverage,
        errors=("invalid_cursor",),
        tag="Service",
        summary="Coverage of an exchange's data, and its gaps",
        description="By kind: trades, order books, settlements. Each day is reconciled with the exchange's trade "
        "list and "
        "the chain's logs; missing data is filled in where possible, and each gap names the source. Figures of `kinds` "
        "and `days` are at most ten seconds old. docs/coverage.md explains them.",
    ),
    Endpoint(
        name="market_coverage",
        path="/v1/markets/{id}/coverage",
        resource=MarketCoverageResource,
        parameters=GapParameters,
        answers=records.MarketCoverage,
        errors=("not_found", "invalid_cursor"),
        missing="The market does not exist",
        tag="Service",
        summary="Coverage of a market, and its gaps",
        description="For the market's lifetime. Its gaps include those that affected every market in that time.",
    ),
)
