"""What is held, and what is missing."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.coverage import records
from api.endpoints.coverage.requests import GapsWithin
from api.endpoints.coverage.resource import Coverage, MarketCoverage

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="coverage",
        path="/v1/coverage",
        resource=Coverage,
        parameters=GapsWithin,
        answers=records.Coverage,
        errors=("invalid_cursor",),
        tag="Service",
        summary="What is held from when to when, and every gap",
        description="By kind: trades, order books, settlements. Each day is counted against the exchange's list of "
        "trades and the chain's logs; what can be filled in is, and a gap says by what. Figures of `kinds` and `days` "
        "are at most ten seconds old. docs/coverage.md says what they mean.",
    ),
    Endpoint(
        name="market_coverage",
        path="/v1/markets/{id}/coverage",
        resource=MarketCoverage,
        parameters=GapsWithin,
        answers=records.MarketCoverage,
        errors=("not_found", "invalid_cursor"),
        missing="There is no such market",
        tag="Service",
        summary="What is held of a market, and every gap in it",
        description="As far as the market existed; its gaps are its own and those of every market in that time.",
    ),
)
