"""Parameters of the service endpoints."""

from __future__ import annotations

from api.schemas.requests import Exchange, Parameters


class StatsParameters(Parameters, frozen=True, kw_only=True):
    """Totals of an exchange."""

    exchange: Exchange = "polymarket"
