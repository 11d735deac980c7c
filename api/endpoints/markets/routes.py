"""Routes of the market endpoints: lists, rankings, search, and one market in detail."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.base.lists import LAST_MODIFIED
from api.endpoints.base.resource import MarketRowResource, RecordedRowResource
from api.endpoints.books.resource import LiveResource
from api.endpoints.markets import records
from api.endpoints.markets.from_exchange import cost_of_source
from api.endpoints.markets.lists import (
    MarketComparison,
    MarketsByTimeframe,
    MarketSearch,
    Ranking,
    RecentlyListedMarkets,
    ResolvingMarkets,
    TopMarkets,
)
from api.endpoints.markets.overview import RelatedMarkets
from api.endpoints.markets.requests import (
    CompareParameters,
    MarketParameters,
    NewMarketParameters,
    RankingParameters,
    ResolvingParameters,
    SearchParameters,
    TimeframeParameters,
    TopParameters,
)
from api.endpoints.markets.resource import Markets
from api.schemas.records import Market, MarketDetail, MarketPage
from api.schemas.requests import OutcomeParameters
from sql.queries import markets, overview, rankings

NO_MARKET = "The market does not exist"

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="markets",
        path="/v1/markets",
        resource=Markets,
        parameters=MarketParameters,
        answers=MarketPage,
        cost=cost_of_source,
        cost_rule="1; with `source=polymarket` 2",
        cache_s=1,
        errors=("invalid_cursor", "upstream_unavailable"),
        tag="Markets",
        summary="Markets, most active first",
        description="Ranked by activity in the last 24 hours, then the rest, newest first. Following `next_cursor` to "
        "the end returns each market once, even while markets are added and ranks change.",
    ),
    Endpoint(
        name="market",
        path="/v1/markets/{id}",
        resource=MarketRowResource,
        query=markets.detail,
        answers=MarketDetail,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="A market with its price, book state and 24-hour statistics",
    ),
    Endpoint(
        name="search_markets",
        path="/v1/markets/search",
        resource=MarketSearch,
        parameters=SearchParameters,
        answers=list[Market],
        credits=2,
        cache_s=2,
        tag="Markets",
        summary="Search markets, most traded first",
        description="Matches markets whose title, question or slug contains `q`. A text of one or two characters is "
        "searched only among the most traded and the newest markets.",
    ),
    Endpoint(
        name="top_markets",
        path="/v1/markets/top",
        resource=TopMarkets,
        parameters=TopParameters,
        answers=list[records.BusyMarket],
        credits=2,
        cache_s=2,
        headers=LAST_MODIFIED,
        tag="Markets",
        summary="Most traded markets of a period",
        description="By US dollars or number of trades, over all outcomes; recomputed once a minute.",
    ),
    Endpoint(
        name="resolving_markets",
        path="/v1/markets/resolving",
        resource=ResolvingMarkets,
        query=rankings.resolving,
        parameters=ResolvingParameters,
        answers=records.Resolving,
        cache_s=1,
        tag="Markets",
        summary="Markets that end soon",
        description="Active markets whose planned end is in the future, earliest first.",
    ),
    Endpoint(
        name="trending_markets",
        path="/v1/markets/trending",
        resource=Ranking,
        query=rankings.trending,
        parameters=RankingParameters,
        answers=records.Trending,
        credits=2,
        cache_s=2,
        tag="Markets",
        summary="Markets with a volume spike in the last hour",
        description="Active markets by `spike_ratio`: US dollars of the last hour divided by the 24 hours' hourly "
        "mean; "
        "ties by the last hour's volume. A market first traded within the 24 hours is compared with "
        "the hours since, from the start of that hour on; while these are fewer than three, `spike_ratio` is null and "
        "the market is listed last. Only markets with at least `signal_min_trades` trades (10) and "
        "`signal_min_volume_usd` (250) in the last hour. Recomputed once a minute.",
    ),
    Endpoint(
        name="breaking_markets",
        path="/v1/markets/breaking",
        resource=Ranking,
        query=rankings.breaking,
        parameters=RankingParameters,
        answers=records.Breaking,
        credits=2,
        cache_s=2,
        tag="Markets",
        summary="Markets with the largest price move in an hour",
        description="Active markets by absolute `price_move`: from the earliest sample of the last 65 minutes to "
        "now; recomputed once a minute.",
    ),
    Endpoint(
        name="new_markets",
        path="/v1/markets/new",
        resource=RecentlyListedMarkets,
        query=rankings.newest,
        parameters=NewMarketParameters,
        answers=records.NewMarkets,
        cache_s=1,
        tag="Markets",
        summary="Recently listed markets, newest first",
    ),
    Endpoint(
        name="markets_by_timeframe",
        path="/v1/markets/by-timeframe",
        resource=MarketsByTimeframe,
        query=rankings.by_timeframe,
        parameters=TimeframeParameters,
        answers=records.Timeframes,
        credits=2,
        cache_s=2,
        tag="Markets",
        summary="Markets by remaining time",
        description="Seven timeframes by the minutes until `end_time`; markets past their planned end are omitted.",
    ),
    Endpoint(
        name="compare_markets",
        path="/v1/markets/compare",
        resource=MarketComparison,
        parameters=CompareParameters,
        answers=records.Comparison,
        credits=2,
        tag="Markets",
        summary="Compare markets, with their 24-hour statistics",
    ),
    Endpoint(
        name="market_summary",
        path="/v1/markets/{id}/summary",
        resource=RecordedRowResource,
        query=overview.summary,
        answers=records.Summary,
        credits=2,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="A market's price, signals and 24-hour statistics",
    ),
    Endpoint(
        name="market_stats",
        path="/v1/markets/{id}/stats",
        resource=RecordedRowResource,
        query=overview.stats,
        answers=records.MarketStats,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="24-hour statistics of a market's first outcome",
    ),
    Endpoint(
        name="related_markets",
        path="/v1/markets/{id}/related",
        resource=RelatedMarkets,
        answers=records.Related,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="Other markets of a market's event",
    ),
    Endpoint(
        name="market_health",
        path="/v1/markets/{id}/health",
        resource=RecordedRowResource,
        query=overview.health,
        answers=records.MarketHealth,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="Freshness of a market's data",
        description="A quiet market is fresh as long as the feed is alive; a market that has ended has no live data.",
    ),
    Endpoint(
        name="market_liquidity",
        path="/v1/markets/{id}/liquidity",
        resource=LiveResource,
        query=overview.liquidity,
        parameters=OutcomeParameters,
        answers=records.Liquidity,
        errors=("not_found",),
        missing="The outcome has no live order book",
        hint="The market may have ended, or may not trade on the order book",
        tag="Prices",
        summary="Liquidity of an outcome",
        description="The live order book, under the same conditions as `/orderbook`.",
    ),
    Endpoint(
        name="market_sentiment",
        path="/v1/markets/{id}/sentiment",
        resource=RecordedRowResource,
        query=overview.sentiment,
        answers=records.Sentiment,
        credits=2,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="Price and volume trend of a market",
        description="Bullish or bearish if the first outcome's price has changed by more than 5 % in 24 hours. The "
        "volume trend is up or down if the last hour differs by more than 25 % from the 24 hours' hourly mean.",
    ),
)
