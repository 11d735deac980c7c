"""Markets: lists, search, rankings and detail.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from presage_client import _endpoints
from presage_client._operations.base import BaseOperations
from presage_client._transport import joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from presage_client import records
    from presage_client._record import Records


class MarketsOperations(BaseOperations):
    """Markets: lists, search, rankings and detail."""

    def markets(
        self,
        *,
        status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None = None,
        category: str | None = None,
        tag: str | None = None,
        series: str | None = None,
        exchange: Literal["kalshi", "polymarket"] | None = None,
        source: Literal["local", "polymarket"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
    ) -> records.MarketPage:
        """Markets, most active first.

        Ranked by activity in the last 24 hours, then the rest, newest first. Following `next_cursor` to the end
        returns each market once, even while markets are added and ranks change.

        Credits: 1; with `source=polymarket` 2.

        Args:
            status: Only markets with this status; CLOSED is not available with `source=polymarket`.
            category: Only this category, by its slug; with `source=polymarket` not combined with a tag.
            tag: Only markets with this tag, by its slug; with `source=polymarket` not combined with a category.
            series: Only markets of this series, by its name; only with `source=local`.
            exchange: The exchange that lists them; only polymarket with `source=polymarket`. Default: polymarket.
            source: `local`: as recorded here; `polymarket`: requested live from the exchange. Default: local.
            limit: Maximum number of markets in the response. Default: 50. At most 200.
            offset: Number of markets to skip; not combined with a cursor, and only with `source=local`. Default: 0.
            cursor: `next_cursor` of the previous page.
        """
        return self._call(
            _endpoints.MARKETS,
            {},
            {
                "status": status,
                "category": category,
                "tag": tag,
                "series": series,
                "exchange": exchange,
                "source": source,
                "limit": limit,
                "offset": offset,
                "cursor": cursor,
            },
        )

    def iter_markets(
        self,
        *,
        status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None = None,
        category: str | None = None,
        tag: str | None = None,
        series: str | None = None,
        exchange: Literal["kalshi", "polymarket"] | None = None,
        source: Literal["local", "polymarket"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Iterator[records.RankedMarket]:
        """Iterate over all pages of `markets`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.MARKETS,
            {},
            {
                "status": status,
                "category": category,
                "tag": tag,
                "series": series,
                "exchange": exchange,
                "source": source,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def market(self, id: str) -> records.MarketDetail:
        """A market with its price, book state and 24-hour statistics.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return self._call(_endpoints.MARKET, {"id": id}, {})

    def search_markets(
        self,
        q: str,
        *,
        limit: int | None = None,
        status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None = None,
        exchange: Literal["kalshi", "polymarket"] | None = None,
    ) -> Records[records.Market]:
        """Search markets, most traded first.

        Matches markets whose title, question or slug contains `q`. A text of one or two characters is searched only
        among the most traded and the newest markets.

        Credits: 2.

        Args:
            q: Part of a title, question or slug; case-insensitive.
            limit: Maximum number of markets in the response. Default: 20. At most 100.
            status: Only markets with this status.
            exchange: The exchange that lists them. Default: polymarket.
        """
        return self._call(
            _endpoints.SEARCH_MARKETS, {}, {"q": q, "limit": limit, "status": status, "exchange": exchange}
        )

    def top_markets(
        self,
        *,
        by: Literal["trades", "volume"] | None = None,
        exchange: Literal["kalshi", "polymarket"] | None = None,
        limit: int | None = None,
        period: Literal["1h", "24h", "7d"] | None = None,
    ) -> Records[records.BusyMarket]:
        """Most traded markets of a period.

        By US dollars or number of trades, over all outcomes; recomputed once a minute.

        Credits: 2.

        Args:
            by: US dollars traded, or number of trades. Default: volume.
            exchange: The exchange that lists them. Default: polymarket.
            limit: Maximum number of markets in the response. Default: 10. At most 50.
            period: The period up to now. Default: 24h.
        """
        return self._call(
            _endpoints.TOP_MARKETS, {}, {"by": by, "exchange": exchange, "limit": limit, "period": period}
        )

    def resolving_markets(
        self,
        *,
        within: Literal["1h", "24h", "6h", "7d"] | None = None,
        exchange: Literal["kalshi", "polymarket"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> records.Resolving:
        """Markets that end soon.

        Active markets whose planned end is in the future, earliest first.

        Credits: 1.

        Args:
            within: Only markets that end within this time. Default: 24h.
            exchange: The exchange that lists them. Default: polymarket.
            limit: Maximum number of markets in the response. Default: 20. At most 100.
            offset: Number of markets to skip. Default: 0.
        """
        return self._call(
            _endpoints.RESOLVING_MARKETS, {}, {"within": within, "exchange": exchange, "limit": limit, "offset": offset}
        )

    def trending_markets(
        self, *, exchange: Literal["kalshi", "polymarket"] | None = None, limit: int | None = None
    ) -> records.Trending:
        """Markets with a volume spike in the last hour.

        Active markets by `spike_ratio`: US dollars of the last hour divided by the 24 hours' hourly mean; ties by
        the last hour's volume. A market first traded within the 24 hours is compared with the hours since, from the
        start of that hour on; while these are fewer than three, `spike_ratio` is null and the market is listed
        last. Only markets with at least `signal_min_trades` trades (10) and `signal_min_volume_usd` (250) in the
        last hour. Recomputed once a minute.

        Credits: 2.

        Args:
            exchange: The exchange that lists them. Default: polymarket.
            limit: Maximum number of markets in the response. Default: 20. At most 100.
        """
        return self._call(_endpoints.TRENDING_MARKETS, {}, {"exchange": exchange, "limit": limit})

    def breaking_markets(
        self, *, exchange: Literal["kalshi", "polymarket"] | None = None, limit: int | None = None
    ) -> records.Breaking:
        """Markets with the largest price move in an hour.

        Active markets by absolute `price_move`: from the earliest sample of the last 65 minutes to now; recomputed
        once a minute.

        Credits: 2.

        Args:
            exchange: The exchange that lists them. Default: polymarket.
            limit: Maximum number of markets in the response. Default: 20. At most 100.
        """
        return self._call(_endpoints.BREAKING_MARKETS, {}, {"exchange": exchange, "limit": limit})

    def new_markets(
        self,
        *,
        hours: int | None = None,
        exchange: Literal["kalshi", "polymarket"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> records.NewMarkets:
        """Recently listed markets, newest first.

        Credits: 1.

        Args:
            hours: Only markets listed within this many hours. Default: 24.
            exchange: The exchange that lists them. Default: polymarket.
            limit: Maximum number of markets in the response. Default: 20. At most 100.
            offset: Number of markets to skip. Default: 0.
        """
        return self._call(
            _endpoints.NEW_MARKETS, {}, {"hours": hours, "exchange": exchange, "limit": limit, "offset": offset}
        )

    def markets_by_timeframe(
        self,
        *,
        status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None = None,
        limit: int | None = None,
        asset: str | None = None,
        exchange: Literal["kalshi", "polymarket"] | None = None,
    ) -> records.Timeframes:
        """Markets by remaining time.

        Seven timeframes by the minutes until `end_time`; markets past their planned end are omitted.

        Credits: 2.

        Args:
            status: Only markets with this status. Default: ACTIVE.
            limit: Maximum number of markets of each timeframe in the response. Default: 20. At most 100.
            asset: Only markets whose title or slug contains this text.
            exchange: The exchange that lists them. Default: polymarket.
        """
        return self._call(
            _endpoints.MARKETS_BY_TIMEFRAME,
            {},
            {"status": status, "limit": limit, "asset": asset, "exchange": exchange},
        )

    def compare_markets(self, ids: str | Iterable[str]) -> records.Comparison:
        """Compare markets, with their 24-hour statistics.

        Credits: 2.

        Args:
            ids: Up to 10 markets, separated by commas: ids or slugs.
        """
        return self._call(_endpoints.COMPARE_MARKETS, {}, {"ids": joined(ids)})

    def market_summary(self, id: str) -> records.Summary:
        """A market's price, signals and 24-hour statistics.

        Credits: 2.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return self._call(_endpoints.MARKET_SUMMARY, {"id": id}, {})

    def market_stats(self, id: str) -> records.MarketStats:
        """24-hour statistics of a market's first outcome.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return self._call(_endpoints.MARKET_STATS, {"id": id}, {})

    def related_markets(self, id: str) -> records.Related:
        """Other markets of a market's event.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return self._call(_endpoints.RELATED_MARKETS, {"id": id}, {})

    def market_health(self, id: str) -> records.MarketHealth:
        """Freshness of a market's data.

        A quiet market is fresh as long as the feed is alive; a market that has ended has no live data.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return self._call(_endpoints.MARKET_HEALTH, {"id": id}, {})

    def market_sentiment(self, id: str) -> records.Sentiment:
        """Price and volume trend of a market.

        Bullish or bearish if the first outcome's price has changed by more than 5 % in 24 hours. The volume trend
        is up or down if the last hour differs by more than 25 % from the 24 hours' hourly mean.

        Credits: 2.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return self._call(_endpoints.MARKET_SENTIMENT, {"id": id}, {})
