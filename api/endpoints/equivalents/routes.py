"""The route of equivalent markets."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.equivalents import records
from api.endpoints.equivalents.requests import EquivalentParameters
from api.endpoints.equivalents.resource import EquivalentMarkets
from sql.queries import equivalents

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="market_equivalents",
        path="/v1/markets/{id}/equivalents",
        resource=EquivalentMarkets,
        query=equivalents.of_market,
        parameters=EquivalentParameters,
        answers=records.Equivalents,
        cache_s=10,
        errors=("not_found",),
        missing="The market does not exist",
        tag="Equivalents",
        summary="Markets of other exchanges that may ask the same question",
        description="Judged clause by clause from both texts, once an hour; docs/equivalents.md has what a verdict "
        "means and how often it is right. `unreadable` is a refusal, not a finding.",
    ),
)
