"""The endpoint table, by topic: the source of routing, validation, credits and the OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.endpoints.books import routes as books
from api.endpoints.charts import routes as charts
from api.endpoints.coverage import routes as coverage
from api.endpoints.debug import routes as debug
from api.endpoints.equivalents import routes as equivalents
from api.endpoints.events import routes as events
from api.endpoints.exchange import routes as exchange
from api.endpoints.exports import routes as exports
from api.endpoints.keys import routes as keys
from api.endpoints.markets import routes as markets
from api.endpoints.prices import routes as prices
from api.endpoints.replay import routes as replay
from api.endpoints.service import routes as service
from api.endpoints.signals import routes as signals
from api.endpoints.stream import routes as stream
from api.endpoints.trades import routes as trades
from api.endpoints.wallets import routes as wallets
from api.endpoints.webhooks import routes as webhooks

if TYPE_CHECKING:
    from api.endpoints.base.endpoint import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = (
    *keys.ENDPOINTS,
    *service.ENDPOINTS,
    *coverage.ENDPOINTS,
    *markets.ENDPOINTS,
    *prices.ENDPOINTS,
    *books.ENDPOINTS,
    *trades.ENDPOINTS,
    *signals.ENDPOINTS,
    *events.ENDPOINTS,
    *equivalents.ENDPOINTS,
    *exchange.ENDPOINTS,
    *charts.ENDPOINTS,
    *wallets.ENDPOINTS,
    *webhooks.ENDPOINTS,
    *exports.ENDPOINTS,
    *debug.ENDPOINTS,
    *stream.ENDPOINTS,
    *replay.ENDPOINTS,
)
