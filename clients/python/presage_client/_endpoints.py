"""The operations of the service: where each is and what it answers.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage_client import records
from presage_client._transport import Endpoint

if TYPE_CHECKING:
    from presage_client._record import Records

REGISTER: Endpoint[records.NewKey] = Endpoint("POST", "/register", records.NewKey, auth="none")
RECOVER_KEY: Endpoint[records.RecoveryRequested] = Endpoint("POST", "/recover", records.RecoveryRequested, auth="none")
CONFIRM_MAIL: Endpoint[records.Confirmation] = Endpoint("POST", "/confirm", records.Confirmation, auth="none")
ROTATE_KEY: Endpoint[records.Rotation] = Endpoint("POST", "/v1/keys/rotate", records.Rotation)
HEALTH: Endpoint[records.Health] = Endpoint("GET", "/health", records.Health, auth="none")
TIME: Endpoint[records.Time] = Endpoint("GET", "/v1/time", records.Time)
STATS: Endpoint[records.PlatformStats] = Endpoint("GET", "/v1/stats", records.PlatformStats)
PIPELINE_STATUS: Endpoint[records.Pipeline] = Endpoint("GET", "/v1/status/pipeline", records.Pipeline)
OPENAPI: Endpoint[dict[str, Any]] = Endpoint("GET", "/openapi.json", dict[str, Any], auth="none")
REFERENCE: Endpoint[str] = Endpoint("GET", "/docs", str, auth="none", json=False)
METRICS: Endpoint[str] = Endpoint("GET", "/metrics", str, auth="none", json=False)
COVERAGE: Endpoint[records.Coverage] = Endpoint("GET", "/v1/coverage", records.Coverage)
MARKET_COVERAGE: Endpoint[records.MarketCoverage] = Endpoint("GET", "/v1/markets/{id}/coverage", records.MarketCoverage)
MARKETS: Endpoint[records.MarketPage] = Endpoint("GET", "/v1/markets", records.MarketPage)
MARKET: Endpoint[records.MarketDetail] = Endpoint("GET", "/v1/markets/{id}", records.MarketDetail)
SEARCH_MARKETS: Endpoint[Records[records.Market]] = Endpoint(
    "GET", "/v1/markets/search", list[records.Market], item=records.Market
)
TOP_MARKETS: Endpoint[Records[records.BusyMarket]] = Endpoint(
    "GET", "/v1/markets/top", list[records.BusyMarket], item=records.BusyMarket
)
RESOLVING_MARKETS: Endpoint[records.Resolving] = Endpoint("GET", "/v1/markets/resolving", records.Resolving)
TRENDING_MARKETS: Endpoint[records.Trending] = Endpoint("GET", "/v1/markets/trending", records.Trending)
BREAKING_MARKETS: Endpoint[records.Breaking] = Endpoint("GET", "/v1/markets/breaking", records.Breaking)
NEW_MARKETS: Endpoint[records.NewMarkets] = Endpoint("GET", "/v1/markets/new", records.NewMarkets)
MARKETS_BY_TIMEFRAME: Endpoint[records.Timeframes] = Endpoint("GET", "/v1/markets/by-timeframe", records.Timeframes)
COMPARE_MARKETS: Endpoint[records.Comparison] = Endpoint("GET", "/v1/markets/compare", records.Comparison)
MARKET_SUMMARY: Endpoint[records.Summary] = Endpoint("GET", "/v1/markets/{id}/summary", records.Summary)
MARKET_STATS: Endpoint[records.MarketStats] = Endpoint("GET", "/v1/markets/{id}/stats", records.MarketStats)
RELATED_MARKETS: Endpoint[records.Related] = Endpoint("GET", "/v1/markets/{id}/related", records.Related)
MARKET_HEALTH: Endpoint[records.MarketHealth] = Endpoint("GET", "/v1/markets/{id}/health", records.MarketHealth)
MARKET_LIQUIDITY: Endpoint[records.Liquidity] = Endpoint("GET", "/v1/markets/{id}/liquidity", records.Liquidity)
MARKET_SENTIMENT: Endpoint[records.Sentiment] = Endpoint("GET", "/v1/markets/{id}/sentiment", records.Sentiment)
MARKET_PRICE: Endpoint[records.Price] = Endpoint("GET", "/v1/markets/{id}/price", records.Price)
PRICES: Endpoint[dict[str, records.Price | None]] = Endpoint("GET", "/v1/prices", dict[str, records.Price | None])
MARKET_PRICE_HISTORY: Endpoint[Records[records.Candle]] = Endpoint(
    "GET", "/v1/markets/{id}/price-history", list[records.Candle], item=records.Candle
)
MARKET_CANDLES: Endpoint[records.Bars] = Endpoint("GET", "/v1/markets/{id}/candles", records.Bars)
MARKET_ORDERBOOK: Endpoint[records.Orderbook] = Endpoint("GET", "/v1/markets/{id}/orderbook", records.Orderbook)
MARKET_ORDERBOOK_HISTORY: Endpoint[records.BookHistory] = Endpoint(
    "GET", "/v1/markets/{id}/orderbook/history", records.BookHistory
)
MARKET_TRADES: Endpoint[Records[records.Trade]] = Endpoint(
    "GET", "/v1/markets/{id}/trades", list[records.Trade], item=records.Trade
)
RECENT_TRADES: Endpoint[Records[records.RecentTrade]] = Endpoint(
    "GET", "/v1/trades/recent", list[records.RecentTrade], item=records.RecentTrade
)
MARKET_SIGNALS: Endpoint[Records[records.Signal]] = Endpoint(
    "GET", "/v1/markets/{id}/signals", list[records.Signal], item=records.Signal
)
TOP_SIGNALS: Endpoint[records.TopSignals] = Endpoint("GET", "/v1/signals/top", records.TopSignals)
EVENT_MARKETS: Endpoint[records.EventMarkets] = Endpoint("GET", "/v1/events/{id}/markets", records.EventMarkets)
CATEGORIES: Endpoint[Records[records.CategoryCount]] = Endpoint(
    "GET", "/v1/categories", list[records.CategoryCount], item=records.CategoryCount
)
CATEGORY_MARKETS: Endpoint[records.CategoryMarkets] = Endpoint(
    "GET", "/v1/categories/{slug}/markets", records.CategoryMarkets
)
TAGS: Endpoint[Records[records.TagCount]] = Endpoint("GET", "/v1/tags", list[records.TagCount], item=records.TagCount)
SERIES: Endpoint[Records[records.SeriesCount]] = Endpoint(
    "GET", "/v1/series", list[records.SeriesCount], item=records.SeriesCount
)
MARKET_EQUIVALENTS: Endpoint[records.Equivalents] = Endpoint("GET", "/v1/markets/{id}/equivalents", records.Equivalents)
EVENTS: Endpoint[Records[dict[str, Any]]] = Endpoint("GET", "/v1/events", list[dict[str, Any]], item=dict)
POSITIONS: Endpoint[Records[records.Position]] = Endpoint(
    "GET", "/v1/positions", list[records.Position], item=records.Position
)
CLOSED_POSITIONS: Endpoint[Records[records.ClosedPosition]] = Endpoint(
    "GET", "/v1/positions/closed", list[records.ClosedPosition], item=records.ClosedPosition
)
MARKET_POSITIONS: Endpoint[Records[records.MarketPosition]] = Endpoint(
    "GET", "/v1/markets/{id}/positions", list[records.MarketPosition], item=records.MarketPosition
)
UDF_CONFIG: Endpoint[records.ChartConfig] = Endpoint("GET", "/v1/udf/config", records.ChartConfig)
UDF_SYMBOLS: Endpoint[records.ChartSymbol] = Endpoint("GET", "/v1/udf/symbols", records.ChartSymbol)
UDF_SEARCH: Endpoint[Records[records.FoundSymbol]] = Endpoint(
    "GET", "/v1/udf/search", list[records.FoundSymbol], item=records.FoundSymbol
)
UDF_HISTORY: Endpoint[records.ChartBars] = Endpoint("GET", "/v1/udf/history", records.ChartBars)
UDF_TIME: Endpoint[int] = Endpoint("GET", "/v1/udf/time", int)
UDF_QUOTES: Endpoint[records.ChartQuotes] = Endpoint("GET", "/v1/udf/quotes", records.ChartQuotes)
UDF_MARKS: Endpoint[records.ChartMarks] = Endpoint("GET", "/v1/udf/marks", records.ChartMarks)
UDF_TIMESCALE_MARKS: Endpoint[Records[records.TimeMark]] = Endpoint(
    "GET", "/v1/udf/timescale_marks", list[records.TimeMark], item=records.TimeMark
)
LEADERBOARD: Endpoint[records.Leaderboard] = Endpoint("GET", "/v1/leaderboard", records.Leaderboard)
WATCH_WALLET: Endpoint[records.Watching] = Endpoint("POST", "/v1/wallets/watch", records.Watching)
WATCHED_WALLETS: Endpoint[records.Watched] = Endpoint("GET", "/v1/wallets/watched", records.Watched)
UNWATCH_WALLET: Endpoint[records.Watching] = Endpoint("DELETE", "/v1/wallets/{address}/watch", records.Watching)
WALLET_ACTIVITY: Endpoint[records.Activity] = Endpoint("GET", "/v1/wallets/{address}/activity", records.Activity)
WALLET_ONCHAIN: Endpoint[records.Onchain] = Endpoint("GET", "/v1/wallets/{address}/onchain", records.Onchain)
WALLET_SUMMARY: Endpoint[records.WalletSummary] = Endpoint(
    "GET", "/v1/wallets/{address}/summary", records.WalletSummary
)
WALLET_MARKETS: Endpoint[records.WalletMarkets] = Endpoint(
    "GET", "/v1/wallets/{address}/markets", records.WalletMarkets
)
WALLET_OPEN_POSITIONS: Endpoint[records.OpenPositions] = Endpoint(
    "GET", "/v1/wallets/{address}/positions/open", records.OpenPositions
)
WALLET_PNL: Endpoint[records.WalletPnl] = Endpoint("GET", "/v1/wallets/{address}/pnl", records.WalletPnl)
WEBHOOKS: Endpoint[records.WebhookPage] = Endpoint("GET", "/v1/webhooks", records.WebhookPage)
CREATE_WEBHOOK: Endpoint[records.Webhook] = Endpoint("POST", "/v1/webhooks", records.Webhook)
WEBHOOK: Endpoint[records.Webhook] = Endpoint("GET", "/v1/webhooks/{id}", records.Webhook)
CHANGE_WEBHOOK: Endpoint[records.Webhook] = Endpoint("PATCH", "/v1/webhooks/{id}", records.Webhook)
REMOVE_WEBHOOK: Endpoint[records.Removed] = Endpoint("DELETE", "/v1/webhooks/{id}", records.Removed)
VERIFY_WEBHOOK: Endpoint[records.Webhook] = Endpoint("POST", "/v1/webhooks/{id}/verify", records.Webhook)
TEST_WEBHOOK: Endpoint[records.Delivery] = Endpoint("POST", "/v1/webhooks/{id}/test", records.Delivery)
ROTATE_WEBHOOK_SECRET: Endpoint[records.SecretRotation] = Endpoint(
    "POST", "/v1/webhooks/{id}/rotate-secret", records.SecretRotation
)
WEBHOOK_DELIVERIES: Endpoint[records.DeliveryPage] = Endpoint(
    "GET", "/v1/webhooks/{id}/deliveries", records.DeliveryPage
)
REDELIVER: Endpoint[records.Delivery] = Endpoint(
    "POST", "/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver", records.Delivery
)
EXPORTS: Endpoint[records.ExportPage] = Endpoint("GET", "/v1/exports", records.ExportPage)
EXPORT_MANIFEST: Endpoint[records.ExportManifest] = Endpoint("GET", "/v1/exports/{topic}/{day}", records.ExportManifest)
EXPORT_FILE: Endpoint[bytes] = Endpoint("GET", "/v1/exports/{topic}/{day}/{file}", bytes, json=False)
DEBUG_MARKETS: Endpoint[dict[str, Any]] = Endpoint("GET", "/debug/markets", dict[str, Any], auth="debug")
DEBUG_MARKET: Endpoint[dict[str, Any]] = Endpoint("GET", "/debug/markets/{id}", dict[str, Any], auth="debug")
DEBUG_TRADES: Endpoint[Records[dict[str, Any]]] = Endpoint(
    "GET", "/debug/trades", list[dict[str, Any]], item=dict, auth="debug"
)
DEBUG_ORDERBOOK: Endpoint[dict[str, Any]] = Endpoint("GET", "/debug/orderbook/{id}", dict[str, Any], auth="debug")
DEBUG_SIGNALS: Endpoint[Records[dict[str, Any]]] = Endpoint(
    "GET", "/debug/signals", list[dict[str, Any]], item=dict, auth="debug"
)
DEBUG_MARKET_SIGNALS: Endpoint[Records[dict[str, Any]]] = Endpoint(
    "GET", "/debug/signals/{id}", list[dict[str, Any]], item=dict, auth="debug"
)
