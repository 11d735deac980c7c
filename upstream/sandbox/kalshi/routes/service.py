"""The exchange itself: status, schedule, cutoff; an account's limits; and lists that are empty here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upstream.sandbox.common.answers import Answer, answer, route
from upstream.sandbox.kalshi.formats import rfc3339
from upstream.sandbox.kalshi.limits import DEFAULT_COST, tier_json
from upstream.sandbox.kalshi.routes.query import Json, not_found

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.limits import Tier

SHARDS = {0: "Default", 1: "Combos", 2: "Crypto", 3: "Sports"}
ALWAYS = [{"open_time": "00:00", "close_time": "24:00"}]
THURSDAY = [{"open_time": "00:00", "close_time": "03:00"}, {"open_time": "05:00", "close_time": "24:00"}]
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
EMPTY: dict[str, Json] = {
    "/exchange/announcements": {"announcements": []},
    "/milestones": {"milestones": [], "cursor": ""},
    "/structured_targets": {"structured_targets": [], "cursor": ""},
    "/multivariate_event_collections": {"multivariate_contracts": [], "cursor": ""},
    "/incentive_programs": {"incentive_programs": [], "next_cursor": ""},
    "/live_data/batch": {"live_datas": []},
    "/series/{series}/events/{ticker}/forecast_percentile_history": {"forecast_history": []},
}
"""What the sandbox has none of."""


def _constant(body: Json) -> Answer:
    return lambda _request: body


class ServiceRoutes:
    """Endpoints about the exchange and about an account."""

    def __init__(self, exchange: KalshiExchange, tier: Tier) -> None:
        self._exchange = exchange
        self._tier = tier

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            route("/exchange/status", self.status),
            route("/exchange/schedule", self.schedule),
            route("/exchange/user_data_timestamp", self.user_data),
            route("/historical/cutoff", self.cutoff),
            route("/historical/cutoff_timestamps", self.cutoff),  # its former name
            route("/account/limits", lambda _request: tier_json(self._tier)),
            route("/account/endpoint_costs", lambda _request: {"default_cost": DEFAULT_COST, "endpoint_costs": []}),
            *(route(path, _constant(body)) for path, body in EMPTY.items()),
            route("/{anything:path}", self.unknown, ("GET", "POST", "PUT", "DELETE")),
        ]

    def status(self, _request: Request) -> Response:
        """Return which shards trade; with 503 while none does."""
        paused = self._exchange.paused

        def of_shard(shard: int) -> Json:
            active = shard not in paused
            return {"exchange_active": True, "trading_active": active, "intra_exchange_transfers_active": active}

        shards = [{"exchange_index": index, "description": name, **of_shard(index)} for index, name in SHARDS.items()]
        body = of_shard(0) | {"exchange_index_statuses": shards}
        return answer(body, 503 if len(paused) == len(SHARDS) else 200)

    def schedule(self, _request: Request) -> Json:
        """Return when trading is open, in New York's time: always but for two hours on Thursdays."""
        days = dict.fromkeys(DAYS, ALWAYS) | {"thursday": THURSDAY}
        hours = {"start_time": "2026-01-01T00:00:00Z", "end_time": "2099-01-01T00:00:00Z", **days}
        return {"schedule": {"standard_hours": [hours], "maintenance_windows": []}}

    def user_data(self, _request: Request) -> Json:
        """Return the moment up to which an account's data are complete."""
        return {"as_of_time": rfc3339(self._exchange.now_ms)}

    def cutoff(self, _request: Request) -> Json:
        """Return the moment before which data are historical."""
        at = rfc3339(self._exchange.cutoff_ms)
        return {"market_settled_ts": at, "trades_created_ts": at, "orders_updated_ts": at}

    def unknown(self, _request: Request) -> Json:
        """Refuse a path that is not served."""
        raise not_found()
