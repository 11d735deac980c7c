"""The table of endpoints, the contents page of the service: routes, checks, prices and document come from here."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.base.resource import OfMarketRow
from api.endpoints.books import routes as books
from api.endpoints.books.resource import PAST_COST, Live, cost_of_stream
from api.endpoints.charts import routes as charts
from api.endpoints.coverage import routes as coverage
from api.endpoints.debug import routes as debug
from api.endpoints.events import routes as taxonomy
from api.endpoints.exchange import routes as exchange
from api.endpoints.exchange.resource import cost_of_source
from api.endpoints.exports import routes as exports
from api.endpoints.keys.resource import Register, Registration, Rotate
from api.endpoints.markets import routes as lists
from api.endpoints.markets.resource import Markets
from api.endpoints.prices.resource import UNKNOWN_IDS, Bars, History, Prices, cost_of_several
from api.endpoints.replay.requests import Replayed
from api.endpoints.replay.resource import MarketChannel
from api.endpoints.service.metrics import MetricsPage
from api.endpoints.service.resource import Document, Health, Pipeline, Platform, Reference, Time
from api.endpoints.signals import routes as signals
from api.endpoints.stream.resource import Stream
from api.endpoints.trades.resource import Trades, cost_of_rows, cost_of_trades
from api.endpoints.wallets import routes as wallets
from api.endpoints.webhooks import routes as webhooks
from api.schemas import records
from api.schemas.requests import CandlesOf, Connect, HistoryOf, Ids, MarketFilter, OfOutcome, TradesOf
from sql.queries import markets, pipeline, prices, trades

NO_MARKET = "There is no such market"

ENDPOINTS: tuple[Endpoint, ...] = (
    # --- Keys and the service itself
    Endpoint(
        name="register",
        method="POST",
        path="/register",
        resource=Register,
        body=Registration,
        answers=records.NewKey,
        key="none",
        credits=0,
        status=201,
        errors=("invalid_body", "missing_parameter", "body_too_large", "burst_exceeded"),
        tag="Keys",
        summary="Get an API key",
        description="The key is shown this once. The free tier has one active key an email address: a second "
        "request for the same address is refused, and `POST /v1/keys/rotate` replaces a key.",
    ),
    Endpoint(
        name="rotate_key",
        method="POST",
        path="/v1/keys/rotate",
        resource=Rotate,
        answers=records.Rotation,
        credits=0,
        errors=("not_found",),
        missing="The key's record is gone",
        tag="Keys",
        summary="Replace the API key",
        description="The new key has the same tier, limits and use; the one this was asked with is no longer valid.",
    ),
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
    *coverage.ENDPOINTS,
    # --- Markets
    Endpoint(
        name="markets",
        path="/v1/markets",
        resource=Markets,
        parameters=MarketFilter,
        answers=records.MarketPage,
        cost=cost_of_source,
        cost_rule="1; with `source=polymarket` 2",
        cache_s=1,
        errors=("invalid_cursor", "upstream_unavailable"),
        tag="Markets",
        summary="Markets, most active first",
        description="Ranked by the last 24 hours' activity, then the rest, newest first. Following `next_cursor` to "
        "the end gives each market once, even while new ones come and ranks change.",
    ),
    Endpoint(
        name="market",
        path="/v1/markets/{id}",
        resource=OfMarketRow,
        query=markets.detail,
        answers=records.MarketDetail,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="One market, with its price, book and last 24 hours",
    ),
    # --- Prices, books, trades
    Endpoint(
        name="market_price",
        path="/v1/markets/{id}/price",
        resource=Live,
        query=prices.of_outcome,
        parameters=OfOutcome,
        answers=records.Price,
        errors=("not_found",),
        missing="The outcome has no live price",
        hint="The market may not be actively traded",
        tag="Prices",
        summary="What an outcome costs right now",
        description="While it can be relied on: the market is active, its book agrees with the exchange's best prices, "
        "and the live feed is alive. Otherwise 404, and `hint` says why. A quiet market keeps its price, however old.",
    ),
    Endpoint(
        name="prices",
        path="/v1/prices",
        resource=Prices,
        query=prices.of_ids,
        parameters=Ids,
        answers=dict[str, records.Price | None],
        cost=cost_of_several,
        cost_rule="1 for each started 25 ids",
        headers=UNKNOWN_IDS,
        tag="Prices",
        summary="What several markets cost right now",
        description="By the id each was asked by; null where there is no live price (see `/v1/markets/{id}/price`). "
        "Ids that name no market are null too, and named in `X-Unknown-Ids`. Prices are of the first outcome.",
    ),
    *books.ENDPOINTS,
    Endpoint(
        name="market_trades",
        path="/v1/markets/{id}/trades",
        resource=Trades,
        query=trades.of_outcome,
        parameters=TradesOf,
        answers=list[records.Trade],
        cost=cost_of_trades,
        cost_rule="1 for each started 1,000 of `limit`; with `source=data-api` 2 at least",
        errors=("not_found", "upstream_unavailable"),
        missing=NO_MARKET,
        tag="Trades",
        summary="Trades of an outcome or of all, newest first",
        description="`outcome=all` gives those of all outcomes, as `wallet` does unless an outcome is named. The "
        "newest `limit` trades from `from` on and before `to`: to go on, ask again with `to` set to the oldest `ts`.",
    ),
    Endpoint(
        name="market_price_history",
        path="/v1/markets/{id}/price-history",
        resource=History,
        parameters=HistoryOf,
        answers=list[records.Candle],
        cost=cost_of_rows,
        cost_rule="1 for each started 1,000 of `limit`",
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Prices",
        summary="Candles of an outcome, oldest first",
        description="The newest `limit` candles that begin from `from` on and before `to`.",
    ),
    Endpoint(
        name="market_candles",
        path="/v1/markets/{id}/candles",
        resource=Bars,
        parameters=CandlesOf,
        answers=records.Bars,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Prices",
        summary="Candles as charting libraries take them",
        description="The column format of a UDF data feed. Without `from`, the last 500 bars' time is looked at.",
    ),
    # --- Lists of markets, and what is told of one
    *lists.ENDPOINTS,
    # --- Signals
    *signals.ENDPOINTS,
    # --- Events, categories, tags and series
    *taxonomy.ENDPOINTS,
    # --- What the exchange says right now
    *exchange.ENDPOINTS,
    # --- Charts
    *charts.ENDPOINTS,
    # --- Wallets
    *wallets.ENDPOINTS,
    # --- Webhooks
    *webhooks.ENDPOINTS,
    # --- Exports
    *exports.ENDPOINTS,
    # --- Debugging
    *debug.ENDPOINTS,
    # --- Live
    Endpoint(
        name="stream",
        path="/stream",
        resource=Stream,
        parameters=Connect,
        answers=None,
        key="query",
        cost=cost_of_stream,
        cost_rule=f"1, or {PAST_COST} with `replay_from`",
        status=101,
        errors=("forbidden", "invalid_parameter"),
        tag="Stream",
        summary="Everything as it happens (WebSocket)",
        description="Without a word from the client: all markets, all types. A frame holds one or more JSON messages, "
        "separated by newlines. With `replay_from` it tells of what has been: of markets that the client names.",
    ),
    Endpoint(
        name="market_channel_replay",
        path="/replay/ws/market",
        resource=MarketChannel,
        parameters=Replayed,
        answers=None,
        key="query",
        credits=PAST_COST,
        status=101,
        errors=("forbidden", "invalid_parameter"),
        tag="Stream",
        summary="The past in the exchange's own protocol (WebSocket)",
        description="Its market channel, out of what is recorded here: subscriptions, PING, `book`, `price_change`, "
        "`last_trade_price`, `tick_size_change` and `best_bid_ask` are the exchange's, field by field, so that what is "
        "written for the exchange plays the past unchanged.",
    ),
)
