"""Routes of markets: lists, rankings, search, and one market in detail."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.base.lists import COMPUTED
from api.endpoints.base.resource import OfMarketRow
from api.endpoints.books.resource import Live
from api.endpoints.exchange.resource import cost_of_source
from api.endpoints.markets import records
from api.endpoints.markets.lists import Busiest, InHours, Search, SideBySide, Standing, Timed, WithinTime
from api.endpoints.markets.overview import Siblings
from api.endpoints.markets.requests import ByTimeframe, Compared, Most, Newest, Resolving, SearchFor, Top
from api.endpoints.markets.resource import Markets
from api.schemas.records import Market, MarketDetail, MarketPage
from api.schemas.requests import MarketFilter, OfOutcome
from sql.queries import markets, overview, rankings

NO_MARKET = "There is no such market"

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="markets",
        path="/v1/markets",
        resource=Markets,
        parameters=MarketFilter,
        answers=MarketPage,
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
        answers=MarketDetail,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="One market, with its price, book and last 24 hours",
    ),
    Endpoint(
        name="search_markets",
        path="/v1/markets/search",
        resource=Search,
        parameters=SearchFor,
        answers=list[Market],
        credits=2,
        cache_s=2,
        tag="Markets",
        summary="Markets by words, most traded first",
        description="Finds what contains `q` in its title, question or slug. Text of one or two characters is looked "
        "for among the busiest markets and the newest ones.",
    ),
    Endpoint(
        name="top_markets",
        path="/v1/markets/top",
        resource=Busiest,
        parameters=Top,
        answers=list[records.BusyMarket],
        credits=2,
        cache_s=2,
        headers=COMPUTED,
        tag="Markets",
        summary="The busiest markets of a period",
        description="By US dollars or by number of trades, over all outcomes; computed once a minute.",
    ),
    Endpoint(
        name="resolving_markets",
        path="/v1/markets/resolving",
        resource=WithinTime,
        query=rankings.resolving,
        parameters=Resolving,
        answers=records.Resolving,
        cache_s=1,
        tag="Markets",
        summary="Markets that end soon",
        description="Active markets whose planned end is yet to come, those that end first first.",
    ),
    Endpoint(
        name="trending_markets",
        path="/v1/markets/trending",
        resource=Standing,
        query=rankings.trending,
        parameters=Most,
        answers=records.Trending,
        credits=2,
        cache_s=2,
        tag="Markets",
        summary="Markets whose last hour stands out",
        description="Active markets by `spike_ratio`: US dollars of the last hour over the 24 hours' hourly mean; of "
        "alike ones that with most in the last hour first. A market first traded within the 24 hours is compared with "
        "the hours since, from the start of that hour on; while these are less than three, `spike_ratio` is null, and "
        "it comes after all others. Only markets with at least `signal_min_trades` trades (10) and "
        "`signal_min_volume_usd` (250) in the last hour. Computed once a minute.",
    ),
    Endpoint(
        name="breaking_markets",
        path="/v1/markets/breaking",
        resource=Standing,
        query=rankings.breaking,
        parameters=Most,
        answers=records.Breaking,
        credits=2,
        cache_s=2,
        tag="Markets",
        summary="Markets whose price has moved most in an hour",
        description="Active markets by the size of `price_move`: from the earliest sample of the last 65 minutes to "
        "now; computed once a minute.",
    ),
    Endpoint(
        name="new_markets",
        path="/v1/markets/new",
        resource=InHours,
        query=rankings.newest,
        parameters=Newest,
        answers=records.NewMarkets,
        cache_s=1,
        tag="Markets",
        summary="Markets listed lately, newest first",
    ),
    Endpoint(
        name="markets_by_timeframe",
        path="/v1/markets/by-timeframe",
        resource=Timed,
        query=rankings.by_timeframe,
        parameters=ByTimeframe,
        answers=records.Timeframes,
        credits=2,
        cache_s=2,
        tag="Markets",
        summary="Markets by the time left to them",
        description="Seven timeframes by the minutes until `end_time`; markets past their planned end are in none.",
    ),
    Endpoint(
        name="compare_markets",
        path="/v1/markets/compare",
        resource=SideBySide,
        parameters=Compared,
        answers=records.Comparison,
        credits=2,
        tag="Markets",
        summary="Markets side by side, with their last 24 hours",
    ),
    Endpoint(
        name="market_summary",
        path="/v1/markets/{id}/summary",
        resource=OfMarketRow,
        query=overview.summary,
        answers=records.Summary,
        credits=2,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="A market's price, signals and last 24 hours",
    ),
    Endpoint(
        name="market_stats",
        path="/v1/markets/{id}/stats",
        resource=OfMarketRow,
        query=overview.stats,
        answers=records.MarketStats,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="The last 24 hours of a market's first outcome",
    ),
    Endpoint(
        name="related_markets",
        path="/v1/markets/{id}/related",
        resource=Siblings,
        answers=records.Related,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="The other markets of a market's event",
    ),
    Endpoint(
        name="market_health",
        path="/v1/markets/{id}/health",
        resource=OfMarketRow,
        query=overview.health,
        answers=records.MarketHealth,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="How fresh a market's data is",
        description="A market in which nothing happens is fresh as long as the feed is alive; one that has ended has "
        "no live data.",
    ),
    Endpoint(
        name="market_liquidity",
        path="/v1/markets/{id}/liquidity",
        resource=Live,
        query=overview.liquidity,
        parameters=OfOutcome,
        answers=records.Liquidity,
        errors=("not_found",),
        missing="The outcome has no order book right now",
        hint="The market may have ended, or not trade on the order book",
        tag="Prices",
        summary="What can be bought and sold of an outcome right now",
        description="The live order book, under the same conditions as `/orderbook`.",
    ),
    Endpoint(
        name="market_sentiment",
        path="/v1/markets/{id}/sentiment",
        resource=OfMarketRow,
        query=overview.sentiment,
        answers=records.Sentiment,
        credits=2,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Markets",
        summary="Where a market leans",
        description="Bullish or bearish when the first outcome's price has changed by more than 5 % in 24 hours. The "
        "volume's trend is up or down when the last hour is more than 25 % off the 24 hours' hourly mean.",
    ),
)
