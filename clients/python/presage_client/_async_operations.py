"""The operations of the service, for asyncio.

Generated from the OpenAPI document by generate.py: do not edit; run `make client`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from msgspec import UNSET, UnsetType

from presage_client import _endpoints
from presage_client._transport import joined, seconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from datetime import date, datetime

    from presage_client import records
    from presage_client._record import Records
    from presage_client._transport import Endpoint, Instant, Page, Parameter

T = TypeVar("T")


class AsyncOperations(ABC):
    """One method for each operation of the OpenAPI document."""

    @abstractmethod
    async def _call(
        self,
        endpoint: Endpoint[T],
        path: Mapping[str, Parameter],
        query: Mapping[str, Parameter],
        body: Mapping[str, Any] | None = None,
    ) -> T: ...

    @abstractmethod
    def _pages(
        self, endpoint: Endpoint[Page[T]], path: Mapping[str, Parameter], query: Mapping[str, Parameter]
    ) -> AsyncIterator[T]: ...

    async def register(self, app_name: str, email: str, *, use_case: str | None = None) -> records.NewKey:
        """Register an API key.

        The key is shown only once. The free tier allows one active key per email address: a second request for the
        same address is refused; `POST /v1/keys/rotate` replaces a key.

        Credits: 0.

        Args:
            app_name: What the key is for.
            use_case: More about the use.
        """
        return await self._call(
            _endpoints.REGISTER,
            {},
            {},
            {"app_name": app_name, "email": email, "use_case": UNSET if use_case is None else use_case},
        )

    async def rotate_key(self) -> records.Rotation:
        """Replace the API key.

        The new key has the same tier, limits and usage; the key of this request becomes invalid.

        Credits: 0.
        """
        return await self._call(_endpoints.ROTATE_KEY, {}, {})

    async def health(self) -> records.Health:
        """Liveness check.

        Succeeds while this process is running; `/v1/status/pipeline` reports whether the data is fresh.

        Credits: 0.
        """
        return await self._call(_endpoints.HEALTH, {}, {})

    async def time(self) -> records.Time:
        """Server time.

        Credits: 0.
        """
        return await self._call(_endpoints.TIME, {}, {})

    async def stats(self) -> records.PlatformStats:
        """Totals of the platform.

        Credits: 1.
        """
        return await self._call(_endpoints.STATS, {}, {})

    async def pipeline_status(self) -> records.Pipeline:
        """Freshness of each pipeline stage.

        Computed on request from each stage's latest data: a stage that stops becomes late, then stale.

        Credits: 0.
        """
        return await self._call(_endpoints.PIPELINE_STATUS, {}, {})

    async def openapi(self) -> dict[str, Any]:
        """OpenAPI document.

        Credits: 0.
        """
        return await self._call(_endpoints.OPENAPI, {}, {})

    async def reference(self) -> str:
        """API reference page.

        Self-contained. Can send test requests with a key that is kept only in the browser tab.

        Credits: 0.
        """
        return await self._call(_endpoints.REFERENCE, {}, {})

    async def metrics(self) -> str:
        """Prometheus metrics of this server.

        Of all worker processes. The operator can restrict which addresses may read them.

        Credits: 0.
        """
        return await self._call(_endpoints.METRICS, {}, {})

    async def coverage(
        self,
        *,
        kind: Literal["books", "settlements", "trades"] | None = None,
        status: Literal["fillable", "filled", "lost", "open"] | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> records.Coverage:
        """Coverage of stored data, and its gaps.

        By kind: trades, order books, settlements. Each day is reconciled with the exchange's trade list and the
        chain's logs; missing data is filled in where possible, and each gap names the source. Figures of `kinds`
        and `days` are at most ten seconds old. docs/coverage.md explains them.

        Credits: 1.

        Args:
            kind: Only gaps in this kind of data.
            status: Only gaps with this status. `open`: ongoing; `fillable`: over, and its data is still available;
                `filled`: filled in; `lost`: its data is not available anywhere.
            from_: Only gaps that end at or after this moment: RFC 3339 or Unix ms.
            to: Only gaps that began before this moment: RFC 3339 or Unix ms.
            limit: Maximum number of gaps in the response. Default: 100. At most 1000.
            cursor: `next_cursor` of the previous page.
        """
        return await self._call(
            _endpoints.COVERAGE,
            {},
            {"kind": kind, "status": status, "from": from_, "to": to, "limit": limit, "cursor": cursor},
        )

    def iter_coverage(
        self,
        *,
        kind: Literal["books", "settlements", "trades"] | None = None,
        status: Literal["fillable", "filled", "lost", "open"] | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncIterator[records.Gap]:
        """Iterate over all pages of `coverage`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.COVERAGE,
            {},
            {"kind": kind, "status": status, "from": from_, "to": to, "limit": limit, "cursor": cursor},
        )

    async def market_coverage(
        self,
        id: str,
        *,
        kind: Literal["books", "settlements", "trades"] | None = None,
        status: Literal["fillable", "filled", "lost", "open"] | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> records.MarketCoverage:
        """Coverage of a market, and its gaps.

        For the market's lifetime. Its gaps include those that affected every market in that time.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            kind: Only gaps in this kind of data.
            status: Only gaps with this status. `open`: ongoing; `fillable`: over, and its data is still available;
                `filled`: filled in; `lost`: its data is not available anywhere.
            from_: Only gaps that end at or after this moment: RFC 3339 or Unix ms.
            to: Only gaps that began before this moment: RFC 3339 or Unix ms.
            limit: Maximum number of gaps in the response. Default: 100. At most 1000.
            cursor: `next_cursor` of the previous page.
        """
        return await self._call(
            _endpoints.MARKET_COVERAGE,
            {"id": id},
            {"kind": kind, "status": status, "from": from_, "to": to, "limit": limit, "cursor": cursor},
        )

    def iter_market_coverage(
        self,
        id: str,
        *,
        kind: Literal["books", "settlements", "trades"] | None = None,
        status: Literal["fillable", "filled", "lost", "open"] | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncIterator[records.Gap]:
        """Iterate over all pages of `market_coverage`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.MARKET_COVERAGE,
            {"id": id},
            {"kind": kind, "status": status, "from": from_, "to": to, "limit": limit, "cursor": cursor},
        )

    async def markets(
        self,
        *,
        status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None = None,
        category: str | None = None,
        tag: str | None = None,
        series: str | None = None,
        exchange: Literal["polymarket"] | None = None,
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
            exchange: The exchange that lists them. Default: polymarket.
            source: `local`: as recorded here; `polymarket`: requested live from the exchange. Default: local.
            limit: Maximum number of markets in the response. Default: 50. At most 200.
            offset: Number of markets to skip; not combined with a cursor, and only with `source=local`. Default: 0.
            cursor: `next_cursor` of the previous page.
        """
        return await self._call(
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
        exchange: Literal["polymarket"] | None = None,
        source: Literal["local", "polymarket"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncIterator[records.RankedMarket]:
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

    async def market(self, id: str) -> records.MarketDetail:
        """A market with its price, book state and 24-hour statistics.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return await self._call(_endpoints.MARKET, {"id": id}, {})

    async def search_markets(
        self,
        q: str,
        *,
        limit: int | None = None,
        status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None = None,
        exchange: Literal["polymarket"] | None = None,
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
        return await self._call(
            _endpoints.SEARCH_MARKETS, {}, {"q": q, "limit": limit, "status": status, "exchange": exchange}
        )

    async def top_markets(
        self,
        *,
        by: Literal["trades", "volume"] | None = None,
        limit: int | None = None,
        period: Literal["1h", "24h", "7d"] | None = None,
    ) -> Records[records.BusyMarket]:
        """Most traded markets of a period.

        By US dollars or number of trades, over all outcomes; recomputed once a minute.

        Credits: 2.

        Args:
            by: US dollars traded, or number of trades. Default: volume.
            limit: Maximum number of markets in the response. Default: 10. At most 50.
            period: The period up to now. Default: 24h.
        """
        return await self._call(_endpoints.TOP_MARKETS, {}, {"by": by, "limit": limit, "period": period})

    async def resolving_markets(
        self,
        *,
        within: Literal["1h", "24h", "6h", "7d"] | None = None,
        exchange: Literal["polymarket"] | None = None,
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
        return await self._call(
            _endpoints.RESOLVING_MARKETS, {}, {"within": within, "exchange": exchange, "limit": limit, "offset": offset}
        )

    async def trending_markets(self, *, limit: int | None = None) -> records.Trending:
        """Markets with a volume spike in the last hour.

        Active markets by `spike_ratio`: US dollars of the last hour divided by the 24 hours' hourly mean; ties by
        the last hour's volume. A market first traded within the 24 hours is compared with the hours since, from the
        start of that hour on; while these are fewer than three, `spike_ratio` is null and the market is listed
        last. Only markets with at least `signal_min_trades` trades (10) and `signal_min_volume_usd` (250) in the
        last hour. Recomputed once a minute.

        Credits: 2.

        Args:
            limit: Maximum number of markets in the response. Default: 20. At most 100.
        """
        return await self._call(_endpoints.TRENDING_MARKETS, {}, {"limit": limit})

    async def breaking_markets(self, *, limit: int | None = None) -> records.Breaking:
        """Markets with the largest price move in an hour.

        Active markets by absolute `price_move`: from the earliest sample of the last 65 minutes to now; recomputed
        once a minute.

        Credits: 2.

        Args:
            limit: Maximum number of markets in the response. Default: 20. At most 100.
        """
        return await self._call(_endpoints.BREAKING_MARKETS, {}, {"limit": limit})

    async def new_markets(
        self,
        *,
        hours: int | None = None,
        exchange: Literal["polymarket"] | None = None,
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
        return await self._call(
            _endpoints.NEW_MARKETS, {}, {"hours": hours, "exchange": exchange, "limit": limit, "offset": offset}
        )

    async def markets_by_timeframe(
        self,
        *,
        status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None = None,
        limit: int | None = None,
        asset: str | None = None,
    ) -> records.Timeframes:
        """Markets by remaining time.

        Seven timeframes by the minutes until `end_time`; markets past their planned end are omitted.

        Credits: 2.

        Args:
            status: Only markets with this status. Default: ACTIVE.
            limit: Maximum number of markets of each timeframe in the response. Default: 20. At most 100.
            asset: Only markets whose title or slug contains this text.
        """
        return await self._call(_endpoints.MARKETS_BY_TIMEFRAME, {}, {"status": status, "limit": limit, "asset": asset})

    async def compare_markets(self, ids: str | Iterable[str]) -> records.Comparison:
        """Compare markets, with their 24-hour statistics.

        Credits: 2.

        Args:
            ids: Up to 10 markets, separated by commas: ids or slugs.
        """
        return await self._call(_endpoints.COMPARE_MARKETS, {}, {"ids": joined(ids)})

    async def market_summary(self, id: str) -> records.Summary:
        """A market's price, signals and 24-hour statistics.

        Credits: 2.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return await self._call(_endpoints.MARKET_SUMMARY, {"id": id}, {})

    async def market_stats(self, id: str) -> records.MarketStats:
        """24-hour statistics of a market's first outcome.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return await self._call(_endpoints.MARKET_STATS, {"id": id}, {})

    async def related_markets(self, id: str) -> records.Related:
        """Other markets of a market's event.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return await self._call(_endpoints.RELATED_MARKETS, {"id": id}, {})

    async def market_health(self, id: str) -> records.MarketHealth:
        """Freshness of a market's data.

        A quiet market is fresh as long as the feed is alive; a market that has ended has no live data.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return await self._call(_endpoints.MARKET_HEALTH, {"id": id}, {})

    async def market_liquidity(self, id: str, *, outcome: str | int | None = None) -> records.Liquidity:
        """Liquidity of an outcome.

        The live order book, under the same conditions as `/orderbook`.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0 or its name. Default: 0.
        """
        return await self._call(_endpoints.MARKET_LIQUIDITY, {"id": id}, {"outcome": outcome})

    async def market_sentiment(self, id: str) -> records.Sentiment:
        """Price and volume trend of a market.

        Bullish or bearish if the first outcome's price has changed by more than 5 % in 24 hours. The volume trend
        is up or down if the last hour differs by more than 25 % from the 24 hours' hourly mean.

        Credits: 2.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return await self._call(_endpoints.MARKET_SENTIMENT, {"id": id}, {})

    async def market_price(self, id: str, *, outcome: str | int | None = None) -> records.Price:
        """Live price of an outcome.

        Returned only while reliable: the market is active, its book agrees with the exchange's best prices, and the
        live feed is alive. Otherwise 404, with the reason in `hint`. A quiet market keeps its price, however old.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0 or its name. Default: 0.
        """
        return await self._call(_endpoints.MARKET_PRICE, {"id": id}, {"outcome": outcome})

    async def prices(self, ids: str | Iterable[str]) -> dict[str, records.Price | None]:
        """Live prices of several markets.

        Keyed by the requested id; null where there is no live price (see `/v1/markets/{id}/price`). Ids that match
        no market are also null, and listed in `X-Unknown-Ids`. Prices are of the first outcome.

        Credits: 1 for each started 25 ids.

        Args:
            ids: Up to 100 markets, separated by commas: ids or slugs.
        """
        return await self._call(_endpoints.PRICES, {}, {"ids": joined(ids)})

    async def market_price_history(
        self,
        id: str,
        *,
        outcome: str | int | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        resolution: Literal["1h", "1m", "1s", "5m"] | None = None,
        limit: int | None = None,
        fill: Literal["none", "previous"] | None = None,
    ) -> Records[records.Candle]:
        """Candles of an outcome, oldest first.

        The newest `limit` candles that begin at or after `from` and before `to`.

        Credits: 1 for each started 1,000 of `limit`.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0 or its name. Default: 0.
            from_: Only from this moment on: RFC 3339 or Unix milliseconds.
            to: Only before this moment: RFC 3339 or Unix milliseconds; default: now.
            resolution: The width of a candle. Default: 1m.
            limit: Maximum number of candles: the newest of the range. Default: 500. At most 20000.
            fill: `previous`: a bucket without trades repeats the last close; `none`: it is omitted. Default: none.
        """
        return await self._call(
            _endpoints.MARKET_PRICE_HISTORY,
            {"id": id},
            {"outcome": outcome, "from": from_, "to": to, "resolution": resolution, "limit": limit, "fill": fill},
        )

    async def market_candles(
        self,
        id: str,
        *,
        outcome: str | int | None = None,
        resolution: Literal["1", "60"] | None = None,
        from_: int | datetime | None = None,
        to: int | datetime | None = None,
    ) -> records.Bars:
        """Candles in UDF column format.

        The column format of a UDF data feed. Without `from`, the range is the width of 500 bars.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0 or its name. Default: 0.
            resolution: Bar width in minutes. Default: 1.
            from_: From this moment on: Unix seconds.
            to: Only before this moment: Unix seconds; default: now.
        """
        return await self._call(
            _endpoints.MARKET_CANDLES,
            {"id": id},
            {"outcome": outcome, "resolution": resolution, "from": seconds(from_), "to": seconds(to)},
        )

    async def market_orderbook(
        self, id: str, *, outcome: str | int | None = None, at: Instant | None = None
    ) -> records.Orderbook:
        """Order book of an outcome.

        Complete and verified: there is no book for a market that has ended, while it disagrees with the exchange's
        own best prices, or while the live feed is late. With `at`, the book at a past moment; `integrity` says how
        reliable it is.

        Credits: 1, or 5 for each book of the past.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0 or its name. Default: 0.
            at: The book at this moment: RFC 3339 or Unix milliseconds; default: now.
        """
        return await self._call(_endpoints.MARKET_ORDERBOOK, {"id": id}, {"outcome": outcome, "at": at})

    async def market_orderbook_history(
        self,
        id: str,
        *,
        outcome: str | int | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        step: int | None = None,
        depth: int | None = None,
    ) -> records.BookHistory:
        """Order book history of an outcome.

        Books at even steps from `from` (default: an hour ago) to `to`; at most one day and 1,000 books. Moments
        before the first stored full book are omitted.

        Credits: 5.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0 or its name. Default: 0.
            from_: Only from this moment on: RFC 3339 or Unix milliseconds.
            to: Up to and including this moment: RFC 3339 or Unix milliseconds; default: now.
            step: Seconds from one book to the next. Default: 60.
            depth: Levels of each side in the response; 0: only the figures. Default: 10.
        """
        return await self._call(
            _endpoints.MARKET_ORDERBOOK_HISTORY,
            {"id": id},
            {"outcome": outcome, "from": from_, "to": to, "step": step, "depth": depth},
        )

    async def market_trades(
        self,
        id: str,
        *,
        outcome: str | int | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
        source: Literal["data-api", "local"] | None = None,
        wallet: str | None = None,
    ) -> Records[records.Trade]:
        """Trades of one or all outcomes, newest first.

        `outcome=all` returns trades of all outcomes, and so does `wallet` unless an outcome is given. The newest
        `limit` trades from `from` on and before `to`. For the next page, set `to` to the oldest `ts`.

        Credits: 1 for each started 1,000 of `limit`; with `source=data-api` 2 at least.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0, its name, or `all`. Default: 0, or `all` with `wallet`.
            from_: Only from this moment on: RFC 3339 or Unix milliseconds.
            to: Only before this moment: RFC 3339 or Unix milliseconds; default: now.
            limit: Maximum number of trades in the response. Default: 100. At most 5000.
            source: `local`: as recorded here; `data-api`: requested live from the exchange. Default: local.
            wallet: Only trades of this wallet; needs `source=data-api`.
        """
        return await self._call(
            _endpoints.MARKET_TRADES,
            {"id": id},
            {"outcome": outcome, "from": from_, "to": to, "limit": limit, "source": source, "wallet": wallet},
        )

    async def recent_trades(
        self, *, limit: int | None = None, market_id: str | None = None, outcome: str | int | None = None
    ) -> Records[records.RecentTrade]:
        """Newest trades of all markets, with their wallets.

        Wallets are empty until the trade is settled on the chain.

        Credits: 1.

        Args:
            limit: Maximum number of trades in the response. Default: 50. At most 500.
            market_id: Only this market: its market_id, slug or numeric id.
            outcome: Only this outcome of the market: its index from 0, its name, or `all`. Default: all.
        """
        return await self._call(
            _endpoints.RECENT_TRADES, {}, {"limit": limit, "market_id": market_id, "outcome": outcome}
        )

    async def market_signals(
        self,
        id: str,
        *,
        type: Literal["book_imbalance", "momentum", "price_reversal", "spread_widening", "volume_spike", "whale_alert"]
        | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
    ) -> Records[records.Signal]:
        """Latest signals of a market, newest first.

        The newest `limit` signals from `from` on and before `to`. For the next page, set `to` to the oldest `ts`.
        Types: `momentum` (a price move), `volume_spike` (unusual volume in the last hour), `whale_alert` (a large
        settlement), `spread_widening`, `book_imbalance` and `price_reversal`; docs/signals.md defines each.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            type: Only signals of this type.
            from_: Only from this moment on: RFC 3339 or Unix milliseconds; default: 30 days ago.
            to: Only before this moment: RFC 3339 or Unix milliseconds.
            limit: Maximum number of signals in the response; others with the last one's `ts` are included. Default:
                100. At most 500.
        """
        return await self._call(
            _endpoints.MARKET_SIGNALS, {"id": id}, {"type": type, "from": from_, "to": to, "limit": limit}
        )

    async def top_signals(
        self,
        *,
        type: Literal["book_imbalance", "momentum", "price_reversal", "spread_widening", "volume_spike", "whale_alert"]
        | None = None,
        limit: int | None = None,
    ) -> records.TopSignals:
        """Strongest signals of the last 24 hours.

        By `score`, the value divided by its threshold; ties: newest first. Types: `momentum` (a price move),
        `volume_spike` (unusual volume in the last hour), `whale_alert` (a large settlement), `spread_widening`,
        `book_imbalance` and `price_reversal`; docs/signals.md defines each.

        Credits: 2.

        Args:
            type: Only signals of this type.
            limit: Maximum number of signals in the response. Default: 20. At most 200.
        """
        return await self._call(_endpoints.TOP_SIGNALS, {}, {"type": type, "limit": limit})

    async def event_markets(
        self,
        id: str,
        *,
        sort: Literal["created", "resolution"] | None = None,
        status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> records.EventMarkets:
        """Markets of an event.

        Credits: 1.

        Args:
            id: The event's id, as in a market's `event_id`.
            sort: `resolution`: earliest end first; `created`: newest first. Default: resolution.
            status: Only markets with this status.
            limit: Maximum number of markets in the response. Default: 50. At most 200.
            offset: Number of markets to skip. Default: 0.
        """
        return await self._call(
            _endpoints.EVENT_MARKETS, {"id": id}, {"sort": sort, "status": status, "limit": limit, "offset": offset}
        )

    async def categories(self) -> Records[records.CategoryCount]:
        """Categories with their number of markets.

        Most markets first; recomputed every few minutes.

        Credits: 1.
        """
        return await self._call(_endpoints.CATEGORIES, {}, {})

    async def category_markets(
        self,
        slug: str,
        *,
        sort: Literal["created", "resolution"] | None = None,
        status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None = None,
        exchange: Literal["polymarket"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> records.CategoryMarkets:
        """Markets of a category.

        Credits: 1.

        Args:
            slug: The category's slug, as listed by GET /v1/categories.
            sort: `created`: newest first; `resolution`: earliest end first. Default: created.
            status: Only markets with this status.
            exchange: The exchange that lists them. Default: polymarket.
            limit: Maximum number of markets in the response. Default: 20. At most 100.
            offset: Number of markets to skip. Default: 0.
        """
        return await self._call(
            _endpoints.CATEGORY_MARKETS,
            {"slug": slug},
            {"sort": sort, "status": status, "exchange": exchange, "limit": limit, "offset": offset},
        )

    async def tags(self) -> Records[records.TagCount]:
        """Tags with their number of markets.

        Most markets first; recomputed every few minutes.

        Credits: 1.
        """
        return await self._call(_endpoints.TAGS, {}, {})

    async def series(self) -> Records[records.SeriesCount]:
        """Series with their number of markets.

        Most markets first; recomputed every few minutes.

        Credits: 1.
        """
        return await self._call(_endpoints.SERIES, {}, {})

    async def events(
        self,
        *,
        exchange: Literal["polymarket"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        active: bool | None = None,
        closed: bool | None = None,
    ) -> Records[dict[str, Any]]:
        """Events, live from the exchange.

        The exchange's own objects. Parameters that are not listed here are forwarded to it.

        Credits: 2.

        Args:
            exchange: The exchange that lists them. Default: polymarket.
            limit: Maximum number of events in the response. Default: 100. At most 500.
            offset: Number of events to skip. Default: 0.
            active: Only events that are (true) or are not (false) active.
            closed: Only events that are (true) or are not (false) closed.
        """
        return await self._call(
            _endpoints.EVENTS,
            {},
            {"exchange": exchange, "limit": limit, "offset": offset, "active": active, "closed": closed},
        )

    async def positions(self, wallet: str) -> Records[records.Position]:
        """Open positions of a wallet, live from the exchange.

        Requested live from the exchange; at most the 2,000 largest positions.

        Credits: 2.

        Args:
            wallet: The wallet's full address.
        """
        return await self._call(_endpoints.POSITIONS, {}, {"wallet": wallet})

    async def closed_positions(self, wallet: str) -> Records[records.ClosedPosition]:
        """Closed positions of a wallet, live from the exchange.

        Requested live from the exchange; at most 2,000 positions, highest profit first.

        Credits: 2.

        Args:
            wallet: The wallet's full address.
        """
        return await self._call(_endpoints.CLOSED_POSITIONS, {}, {"wallet": wallet})

    async def market_positions(self, id: str, *, wallet: str | None = None) -> Records[records.MarketPosition]:
        """Positions in a market, live from the exchange.

        Requested live from the exchange. With `wallet`: its positions, as in `/v1/positions`. Without: the largest
        holders of each outcome, for whom the exchange reports only the shares.

        Credits: 2.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            wallet: Only this wallet: its full address.
        """
        return await self._call(_endpoints.MARKET_POSITIONS, {"id": id}, {"wallet": wallet})

    async def udf_config(self) -> records.ChartConfig:
        """UDF configuration.

        Configure TradingView's UDF client with `/v1/udf` as its base URL and the key as `api_key`.

        Credits: 1.
        """
        return await self._call(_endpoints.UDF_CONFIG, {}, {})

    async def udf_symbols(
        self, symbol: str, *, currency_code: str | None = None, unit_id: str | None = None
    ) -> records.ChartSymbol:
        """UDF symbol description.

        Credits: 1.

        Args:
            symbol: A market's slug or market_id; the suffix `.1` selects its second outcome.
            currency_code: Sent by the library and ignored.
            unit_id: Sent by the library and ignored.
        """
        return await self._call(
            _endpoints.UDF_SYMBOLS, {}, {"symbol": symbol, "currencyCode": currency_code, "unitId": unit_id}
        )

    async def udf_search(
        self,
        *,
        query: str | None = None,
        type: Literal["", "prediction"] | None = None,
        exchange: Literal["", "POLYMARKET", "Polymarket", "polymarket"] | None = None,
        limit: int | None = None,
    ) -> Records[records.FoundSymbol]:
        """UDF symbol search.

        Credits: 2.

        Args:
            query: Part of a title or slug; empty: the most traded markets.
            type: Symbol type; there is only one.
            exchange: The exchange; there is only one.
            limit: Maximum number of symbols in the response. Default: 30. At most 100.
        """
        return await self._call(
            _endpoints.UDF_SEARCH, {}, {"query": query, "type": type, "exchange": exchange, "limit": limit}
        )

    async def udf_history(
        self,
        symbol: str,
        resolution: Literal["1", "15", "1D", "1S", "240", "30", "5", "60", "D"],
        to: int | datetime,
        *,
        currency_code: str | None = None,
        unit_id: str | None = None,
        from_: int | datetime | None = None,
        countback: int | None = None,
    ) -> records.ChartBars:
        """UDF bars of a symbol.

        Credits: 1.

        Args:
            symbol: A market's slug or market_id; the suffix `.1` selects its second outcome.
            currency_code: Sent by the library and ignored.
            unit_id: Sent by the library and ignored.
            resolution: Bar width in minutes; `1S`: one second, `1D`: one day.
            from_: From this moment on: Unix seconds. Default: 0.
            to: Only before this moment: Unix seconds.
            countback: Number of bars before `to`; overrides `from`.
        """
        return await self._call(
            _endpoints.UDF_HISTORY,
            {},
            {
                "symbol": symbol,
                "currencyCode": currency_code,
                "unitId": unit_id,
                "resolution": resolution,
                "from": seconds(from_),
                "to": seconds(to),
                "countback": countback,
            },
        )

    async def udf_time(self) -> int:
        """UDF server time in Unix seconds.

        Credits: 1.
        """
        return await self._call(_endpoints.UDF_TIME, {}, {})

    async def udf_quotes(self, symbols: str | Iterable[str]) -> records.ChartQuotes:
        """UDF quotes of several symbols.

        Credits: 1.

        Args:
            symbols: Up to 50 symbols, separated by commas.
        """
        return await self._call(_endpoints.UDF_QUOTES, {}, {"symbols": joined(symbols)})

    async def udf_marks(
        self,
        symbol: str,
        to: int | datetime,
        *,
        currency_code: str | None = None,
        unit_id: str | None = None,
        resolution: Literal["1", "15", "1D", "1S", "240", "30", "5", "60", "D"] | None = None,
        from_: int | datetime | None = None,
    ) -> records.ChartMarks:
        """UDF marks: status changes and large trades.

        The 50 largest trades of at least 10,000 USD among the newest 20,000 of the range.

        Credits: 1.

        Args:
            symbol: A market's slug or market_id; the suffix `.1` selects its second outcome.
            currency_code: Sent by the library and ignored.
            unit_id: Sent by the library and ignored.
            resolution: The chart's resolution; marks do not depend on it. Default: 1.
            from_: From this moment on: Unix seconds. Default: 0.
            to: Up to this moment: Unix seconds.
        """
        return await self._call(
            _endpoints.UDF_MARKS,
            {},
            {
                "symbol": symbol,
                "currencyCode": currency_code,
                "unitId": unit_id,
                "resolution": resolution,
                "from": seconds(from_),
                "to": seconds(to),
            },
        )

    async def udf_timescale_marks(
        self,
        symbol: str,
        to: int | datetime,
        *,
        currency_code: str | None = None,
        unit_id: str | None = None,
        resolution: Literal["1", "15", "1D", "1S", "240", "30", "5", "60", "D"] | None = None,
        from_: int | datetime | None = None,
    ) -> Records[records.TimeMark]:
        """UDF time scale marks: a market's start, end and resolution.

        Credits: 1.

        Args:
            symbol: A market's slug or market_id; the suffix `.1` selects its second outcome.
            currency_code: Sent by the library and ignored.
            unit_id: Sent by the library and ignored.
            resolution: The chart's resolution; marks do not depend on it. Default: 1.
            from_: From this moment on: Unix seconds. Default: 0.
            to: Up to this moment: Unix seconds.
        """
        return await self._call(
            _endpoints.UDF_TIMESCALE_MARKS,
            {},
            {
                "symbol": symbol,
                "currencyCode": currency_code,
                "unitId": unit_id,
                "resolution": resolution,
                "from": seconds(from_),
                "to": seconds(to),
            },
        )

    async def leaderboard(
        self,
        *,
        window: Literal["1d", "30d", "7d", "all"] | None = None,
        by: Literal["pnl", "volume", "window_pnl"] | None = None,
        limit: int | None = None,
    ) -> records.Leaderboard:
        """Leaderboard of wallets.

        From finalized settlements: a fill's value counts for both sides. Recomputed once a minute, by profit every
        five minutes or, with much data, less often; `computed_at` says when. Positions with fills of unknown cost
        count by volume only.

        Credits: 2.

        Args:
            window: `1d`: the last 24 hours, to the hour; `7d` and `30d`: 7 or 30 full days (UTC) and today; `all`:
                since indexing began. Default: 7d.
            by: `volume`: US dollars traded in the window; `pnl`: realized and unrealized profit of the positions
                traded in the window, since they were opened; `window_pnl`: profit made within the window. Default:
                volume.
            limit: Maximum number of wallets in the response. Default: 20. At most 100.
        """
        return await self._call(_endpoints.LEADERBOARD, {}, {"window": window, "by": by, "limit": limit})

    async def watch_wallet(self, address: str) -> records.Watching:
        """Watch a wallet.

        From the next block on, its fills are stored for 90 days and published on the stream as `wallet_activity`.
        Up to 1,000 wallets per account.

        Credits: 1.

        Args:
            address: The wallet's address; case-insensitive.
        """
        return await self._call(_endpoints.WATCH_WALLET, {}, {}, {"address": address})

    async def watched_wallets(self) -> records.Watched:
        """List watched wallets.

        Credits: 1.
        """
        return await self._call(_endpoints.WATCHED_WALLETS, {}, {})

    async def unwatch_wallet(self, address: str) -> records.Watching:
        """Stop watching a wallet.

        Stored fills are kept for their 90 days. Idempotent: a wallet that is not watched gives the same response.

        Credits: 1.

        Args:
            address: The wallet's address: 0x and 40 hexadecimal digits, case-insensitive.
        """
        return await self._call(_endpoints.UNWATCH_WALLET, {"address": address}, {})

    async def wallet_activity(
        self,
        address: str,
        *,
        from_: Instant | None = None,
        to: Instant | None = None,
        market_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> records.Activity:
        """Activity of a watched wallet.

        Its fills since watching began, stored for 90 days, newest first. Following `next_cursor` returns each trade
        of the range once, even while new ones are added.

        Credits: 1.

        Args:
            address: The wallet's address: 0x and 40 hexadecimal digits, case-insensitive.
            from_: Only from this moment on: RFC 3339 or Unix milliseconds.
            to: Only before this moment: RFC 3339 or Unix milliseconds.
            market_id: Only this market: its market_id, slug or numeric id.
            cursor: `next_cursor` of the previous page.
            limit: Maximum number of trades in the response. Default: 50. At most 200.
        """
        return await self._call(
            _endpoints.WALLET_ACTIVITY,
            {"address": address},
            {"from": from_, "to": to, "market_id": market_id, "cursor": cursor, "limit": limit},
        )

    def iter_wallet_activity(
        self,
        address: str,
        *,
        from_: Instant | None = None,
        to: Instant | None = None,
        market_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[records.OnchainTrade]:
        """Iterate over all pages of `wallet_activity`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.WALLET_ACTIVITY,
            {"address": address},
            {"from": from_, "to": to, "market_id": market_id, "cursor": cursor, "limit": limit},
        )

    async def wallet_onchain(
        self,
        address: str,
        *,
        from_: Instant | None = None,
        to: Instant | None = None,
        market_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> records.Onchain:
        """A wallet's settled trades of the last 14 days.

        As maker or taker, newest first; of any wallet, watched or not. Following `next_cursor` returns each trade
        of the range once, even while new ones are added.

        Credits: 5.

        Args:
            address: The wallet's address: 0x and 40 hexadecimal digits, case-insensitive.
            from_: Only from this moment on: RFC 3339 or Unix milliseconds.
            to: Only before this moment: RFC 3339 or Unix milliseconds.
            market_id: Only this market: its market_id, slug or numeric id.
            cursor: `next_cursor` of the previous page.
            limit: Maximum number of trades in the response. Default: 50. At most 200.
        """
        return await self._call(
            _endpoints.WALLET_ONCHAIN,
            {"address": address},
            {"from": from_, "to": to, "market_id": market_id, "cursor": cursor, "limit": limit},
        )

    def iter_wallet_onchain(
        self,
        address: str,
        *,
        from_: Instant | None = None,
        to: Instant | None = None,
        market_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[records.OnchainTrade]:
        """Iterate over all pages of `wallet_onchain`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.WALLET_ONCHAIN,
            {"address": address},
            {"from": from_, "to": to, "market_id": market_id, "cursor": cursor, "limit": limit},
        )

    async def wallet_summary(self, address: str) -> records.WalletSummary:
        """Totals of a wallet.

        Over all its fills since indexing began, whether it is watched or not; `note` names the blocks.

        Credits: 5.

        Args:
            address: The wallet's address: 0x and 40 hexadecimal digits, case-insensitive.
        """
        return await self._call(_endpoints.WALLET_SUMMARY, {"address": address}, {})

    async def wallet_markets(
        self,
        address: str,
        *,
        from_: Instant | None = None,
        to: Instant | None = None,
        market_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> records.WalletMarkets:
        """Outcomes that a wallet traded, latest first.

        One row per outcome. `bought` and `sold` are shares from fills; `net_position` also includes splits, merges,
        conversions, redemptions and transfers. `from` and `to` apply to the last trade of each. Following
        `next_cursor` returns each row once; an outcome that is traded meanwhile moves to the front.

        Credits: 5.

        Args:
            address: The wallet's address: 0x and 40 hexadecimal digits, case-insensitive.
            from_: Only from this moment on: RFC 3339 or Unix milliseconds.
            to: Only before this moment: RFC 3339 or Unix milliseconds.
            market_id: Only this market: its market_id, slug or numeric id.
            cursor: `next_cursor` of the previous page.
            limit: Maximum number of outcomes in the response. Default: 20. At most 100.
        """
        return await self._call(
            _endpoints.WALLET_MARKETS,
            {"address": address},
            {"from": from_, "to": to, "market_id": market_id, "cursor": cursor, "limit": limit},
        )

    def iter_wallet_markets(
        self,
        address: str,
        *,
        from_: Instant | None = None,
        to: Instant | None = None,
        market_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[records.WalletMarket]:
        """Iterate over all pages of `wallet_markets`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.WALLET_MARKETS,
            {"address": address},
            {"from": from_, "to": to, "market_id": market_id, "cursor": cursor, "limit": limit},
        )

    async def wallet_open_positions(self, address: str) -> records.OpenPositions:
        """Open positions of a wallet, from settlements.

        Outcomes with a positive net position since indexing began: an approximation, since earlier holdings are
        unknown. `GET /v1/positions` requests positions from the exchange.

        Credits: 5.

        Args:
            address: The wallet's address: 0x and 40 hexadecimal digits, case-insensitive.
        """
        return await self._call(_endpoints.WALLET_OPEN_POSITIONS, {"address": address}, {})

    async def wallet_pnl(self, address: str) -> records.WalletPnl:
        """Profit and loss of a wallet.

        By average cost, including fees, one row per outcome. Resolved markets are settled at the stored outcome
        prices. Rows whose cost is partly unknown are flagged and not in the totals.

        Credits: 10.

        Args:
            address: The wallet's address: 0x and 40 hexadecimal digits, case-insensitive.
        """
        return await self._call(_endpoints.WALLET_PNL, {"address": address}, {})

    async def webhooks(self, *, limit: int | None = None, cursor: str | None = None) -> records.WebhookPage:
        """List webhooks.

        The account's webhooks, in order of creation.

        Credits: 0.

        Args:
            limit: Maximum number of rows in the response. Default: 50. At most 200.
            cursor: `next_cursor` of the previous page.
        """
        return await self._call(_endpoints.WEBHOOKS, {}, {"limit": limit, "cursor": cursor})

    def iter_webhooks(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncIterator[records.Webhook]:
        """Iterate over all pages of `webhooks`: `limit` is the size of a page."""
        return self._pages(_endpoints.WEBHOOKS, {}, {"limit": limit, "cursor": cursor})

    async def create_webhook(
        self,
        url: str,
        events: Sequence[
            Literal[
                "market",
                "market.closed",
                "market.listed",
                "market.reopened",
                "market.resolved",
                "onchain_trade",
                "signal",
                "signal.book_imbalance",
                "signal.momentum",
                "signal.price_reversal",
                "signal.spread_widening",
                "signal.volume_spike",
                "signal.whale_alert",
                "trade",
                "wallet_activity",
            ]
        ],
        *,
        markets: Sequence[str] | None = None,
        wallets: Sequence[str] | None = None,
        min_usd: float | None = None,
    ) -> records.Webhook:
        """Create a webhook.

        Each selected event is sent as a `POST`, signed as Standard Webhooks 1.0.0 defines: `secret`, shown only
        once, verifies it. Events are delivered one at a time in stream order; a failed delivery (any response but
        2xx) is attempted ten times within 76 hours, and later events wait for it. Addresses that are not on the
        public internet are refused.

        Credits: 0.

        Args:
            url: The receiver: https or http, on the public internet, in visible ASCII characters.
            events: The events to deliver; `signal` and `market` include all events that begin with them.
            markets: Only these markets: condition ids, slugs or the exchange's numeric ids; null: all.
            wallets: Only `onchain_trade` and `wallet_activity` of these wallets, watched or not; null: on-chain
                trades of all wallets, and activity of those that the account watches.
            min_usd: Only trades, on-chain trades, activity and whale alerts of at least this many US dollars.
        """
        return await self._call(
            _endpoints.CREATE_WEBHOOK,
            {},
            {},
            {
                "url": url,
                "events": events,
                "markets": UNSET if markets is None else markets,
                "wallets": UNSET if wallets is None else wallets,
                "min_usd": UNSET if min_usd is None else min_usd,
            },
        )

    async def webhook(self, id: str) -> records.Webhook:
        """Get a webhook.

        Credits: 0.

        Args:
            id: The webhook's `id`.
        """
        return await self._call(_endpoints.WEBHOOK, {"id": id}, {})

    async def change_webhook(
        self,
        id: str,
        *,
        url: str | UnsetType = UNSET,
        events: Sequence[
            Literal[
                "market",
                "market.closed",
                "market.listed",
                "market.reopened",
                "market.resolved",
                "onchain_trade",
                "signal",
                "signal.book_imbalance",
                "signal.momentum",
                "signal.price_reversal",
                "signal.spread_widening",
                "signal.volume_spike",
                "signal.whale_alert",
                "trade",
                "wallet_activity",
            ]
        ]
        | UnsetType = UNSET,
        markets: Sequence[str] | UnsetType | None = UNSET,
        wallets: Sequence[str] | UnsetType | None = UNSET,
        min_usd: float | UnsetType | None = UNSET,
        enabled: bool | UnsetType = UNSET,
    ) -> records.Webhook:
        """Change, disable or enable a webhook.

        Omitted fields are unchanged; null removes a filter. Events that occur while it is disabled are never
        delivered; deliveries pending before are kept, and delivered once it is enabled.

        Credits: 0.

        Args:
            id: The webhook's `id`.
            url: The receiver: https or http, on the public internet, in visible ASCII characters.
            events: The events to deliver; `signal` and `market` include all events that begin with them.
            markets: Only these markets: condition ids, slugs or the exchange's numeric ids; null: all.
            wallets: Only `onchain_trade` and `wallet_activity` of these wallets, watched or not; null: on-chain
                trades of all wallets, and activity of those that the account watches.
            min_usd: Only trades, on-chain trades, activity and whale alerts of at least this many US dollars.
            enabled: False: nothing is queued or delivered, pending deliveries are kept. True: delivery resumes.
        """
        return await self._call(
            _endpoints.CHANGE_WEBHOOK,
            {"id": id},
            {},
            {
                "url": url,
                "events": events,
                "markets": markets,
                "wallets": wallets,
                "min_usd": min_usd,
                "enabled": enabled,
            },
        )

    async def remove_webhook(self, id: str) -> records.Removed:
        """Remove a webhook.

        Pending deliveries are discarded and the log is deleted.

        Credits: 0.

        Args:
            id: The webhook's `id`.
        """
        return await self._call(_endpoints.REMOVE_WEBHOOK, {"id": id}, {})

    async def test_webhook(self, id: str) -> records.Delivery:
        """Send a test message.

        Sends `webhook.test` ahead of all pending deliveries, with a single attempt; the delivery shows the result.

        Credits: 0.

        Args:
            id: The webhook's `id`.
        """
        return await self._call(_endpoints.TEST_WEBHOOK, {"id": id}, {})

    async def rotate_webhook_secret(
        self, id: str, *, step: Literal["begin", "cancel", "finish"] | None = None
    ) -> records.SecretRotation:
        """Rotate a webhook's secret, in two steps.

        `begin` returns a new secret, and both sign; once the receiver has it, `finish` retires the old one.
        `cancel` discards the new one instead. Without a body: `begin`.

        Credits: 0.

        Args:
            id: The webhook's `id`.
            step: `begin`: a new secret signs in addition to the old one; `finish`: only the new one signs;
                `cancel`: only the old one signs, as before.
        """
        return await self._call(
            _endpoints.ROTATE_WEBHOOK_SECRET, {"id": id}, {}, {"step": UNSET if step is None else step}
        )

    async def webhook_deliveries(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        state: Literal["delivered", "failed", "waiting"] | None = None,
    ) -> records.DeliveryPage:
        """List a webhook's deliveries.

        Newest first, each with its attempts. Finished deliveries are kept for a limited time.

        Credits: 0.

        Args:
            id: The webhook's `id`.
            limit: Maximum number of rows in the response. Default: 50. At most 200.
            cursor: `next_cursor` of the previous page.
            state: Only deliveries with this state.
        """
        return await self._call(
            _endpoints.WEBHOOK_DELIVERIES, {"id": id}, {"limit": limit, "cursor": cursor, "state": state}
        )

    def iter_webhook_deliveries(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        state: Literal["delivered", "failed", "waiting"] | None = None,
    ) -> AsyncIterator[records.Delivery]:
        """Iterate over all pages of `webhook_deliveries`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.WEBHOOK_DELIVERIES, {"id": id}, {"limit": limit, "cursor": cursor, "state": state}
        )

    async def redeliver(self, id: str, delivery_id: str) -> records.Delivery:
        """Redeliver a message.

        With the same `webhook-id`. A finished delivery is queued behind the pending ones with ten new attempts; a
        pending one is attempted as soon as it is next in order.

        Credits: 0.

        Args:
            id: The webhook's `id`.
            delivery_id: The delivery's `id`.
        """
        return await self._call(_endpoints.REDELIVER, {"id": id, "delivery_id": delivery_id}, {})

    async def exports(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        topic: Literal["book_events", "candles", "markets", "settlements", "trades"] | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
    ) -> records.ExportPage:
        """Exported days.

        Each night exports the previous day: markets, trades, candles, settlements, book events; Parquet and CSV.

        Credits: 1.

        Args:
            limit: Maximum number of rows in the response. Default: 50. At most 200.
            cursor: `next_cursor` of the previous page.
            topic: Only days of this topic.
            from_: Only this day (UTC) and later ones.
            to: Only this day (UTC) and earlier ones.
        """
        return await self._call(
            _endpoints.EXPORTS, {}, {"limit": limit, "cursor": cursor, "topic": topic, "from": from_, "to": to}
        )

    def iter_exports(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        topic: Literal["book_events", "candles", "markets", "settlements", "trades"] | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
    ) -> AsyncIterator[records.ExportedDay]:
        """Iterate over all pages of `exports`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.EXPORTS, {}, {"limit": limit, "cursor": cursor, "topic": topic, "from": from_, "to": to}
        )

    async def export_manifest(self, topic: str, day: str | date) -> records.ExportManifest:
        """Files of an exported day.

        With the number of rows, the size in bytes and the SHA-256 of each.

        Credits: 1.

        Args:
            topic: markets, trades, candles, settlements or book_events.
            day: A day (UTC): 2026-11-20.
        """
        return await self._call(_endpoints.EXPORT_MANIFEST, {"topic": topic, "day": day}, {})

    async def export_file(self, topic: str, day: str | date, file: str) -> bytes:
        """Download an exported file.

        Held in memory as a whole; `download_file` writes it to disk and resumes after a lost connection.

        Credits: 1.

        Args:
            topic: markets, trades, candles, settlements or book_events.
            day: A day (UTC): 2026-11-20.
            file: A file's `name` from the manifest; without the hash in it, the current version.
        """
        return await self._call(_endpoints.EXPORT_FILE, {"topic": topic, "day": day, "file": file}, {})

    async def debug_markets(self) -> dict[str, Any]:
        """Feed runs, stages, and the outcomes of the 500 most active tracked markets.

        Credits: 0.
        """
        return await self._call(_endpoints.DEBUG_MARKETS, {}, {})

    async def debug_market(self, id: str) -> dict[str, Any]:
        """All stored state of one market.

        Credits: 0.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return await self._call(_endpoints.DEBUG_MARKET, {"id": id}, {})

    async def debug_trades(self) -> Records[dict[str, Any]]:
        """The 100 newest trades.

        Credits: 0.
        """
        return await self._call(_endpoints.DEBUG_TRADES, {}, {})

    async def debug_orderbook(self, id: str) -> dict[str, Any]:
        """Books of one market, including unverified ones, with their newest changes.

        Credits: 0.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return await self._call(_endpoints.DEBUG_ORDERBOOK, {"id": id}, {})

    async def debug_signals(self) -> Records[dict[str, Any]]:
        """The 1,000 newest signals.

        Credits: 0.
        """
        return await self._call(_endpoints.DEBUG_SIGNALS, {}, {})

    async def debug_market_signals(
        self,
        id: str,
        *,
        type: Literal["book_imbalance", "momentum", "price_reversal", "spread_widening", "volume_spike", "whale_alert"]
        | None = None,
    ) -> Records[dict[str, Any]]:
        """The 1,000 newest signals of one market.

        Credits: 0.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            type: Only signals of this type.
        """
        return await self._call(_endpoints.DEBUG_MARKET_SIGNALS, {"id": id}, {"type": type})
