"""On-chain activity, positions and profit of wallets.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from presage_client import _endpoints
from presage_client._operations.base import BaseOperations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from presage_client import records
    from presage_client._transport import Instant


class WalletsOperations(BaseOperations):
    """On-chain activity, positions and profit of wallets."""

    def leaderboard(
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
        return self._call(_endpoints.LEADERBOARD, {}, {"window": window, "by": by, "limit": limit})

    def watch_wallet(self, address: str) -> records.Watching:
        """Watch a wallet.

        From the next block on, its fills are stored for 90 days and published on the stream as `wallet_activity`.
        Up to 1,000 wallets per account.

        Credits: 1.

        Args:
            address: The wallet's address; case-insensitive.
        """
        return self._call(_endpoints.WATCH_WALLET, {}, {}, {"address": address})

    def watched_wallets(self) -> records.Watched:
        """List watched wallets.

        Credits: 1.
        """
        return self._call(_endpoints.WATCHED_WALLETS, {}, {})

    def unwatch_wallet(self, address: str) -> records.Watching:
        """Stop watching a wallet.

        Stored fills are kept for their 90 days. Idempotent: a wallet that is not watched gives the same response.

        Credits: 1.

        Args:
            address: The wallet's address: 0x and 40 hexadecimal digits, case-insensitive.
        """
        return self._call(_endpoints.UNWATCH_WALLET, {"address": address}, {})

    def wallet_activity(
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
        return self._call(
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
    ) -> Iterator[records.OnchainTrade]:
        """Iterate over all pages of `wallet_activity`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.WALLET_ACTIVITY,
            {"address": address},
            {"from": from_, "to": to, "market_id": market_id, "cursor": cursor, "limit": limit},
        )

    def wallet_onchain(
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
        return self._call(
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
    ) -> Iterator[records.OnchainTrade]:
        """Iterate over all pages of `wallet_onchain`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.WALLET_ONCHAIN,
            {"address": address},
            {"from": from_, "to": to, "market_id": market_id, "cursor": cursor, "limit": limit},
        )

    def wallet_summary(self, address: str) -> records.WalletSummary:
        """Totals of a wallet.

        Over all its fills since indexing began, whether it is watched or not; `note` names the blocks.

        Credits: 5.

        Args:
            address: The wallet's address: 0x and 40 hexadecimal digits, case-insensitive.
        """
        return self._call(_endpoints.WALLET_SUMMARY, {"address": address}, {})

    def wallet_markets(
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
        return self._call(
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
    ) -> Iterator[records.WalletMarket]:
        """Iterate over all pages of `wallet_markets`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.WALLET_MARKETS,
            {"address": address},
            {"from": from_, "to": to, "market_id": market_id, "cursor": cursor, "limit": limit},
        )

    def wallet_open_positions(self, address: str) -> records.OpenPositions:
        """Open positions of a wallet, from settlements.

        Outcomes with a positive net position since indexing began: an approximation, since earlier holdings are
        unknown. `GET /v1/positions` requests positions from the exchange.

        Credits: 5.

        Args:
            address: The wallet's address: 0x and 40 hexadecimal digits, case-insensitive.
        """
        return self._call(_endpoints.WALLET_OPEN_POSITIONS, {"address": address}, {})

    def wallet_pnl(self, address: str) -> records.WalletPnl:
        """Profit and loss of a wallet.

        By average cost, including fees, one row per outcome. Resolved markets are settled at the stored outcome
        prices. Rows whose cost is partly unknown are flagged and not in the totals.

        Credits: 10.

        Args:
            address: The wallet's address: 0x and 40 hexadecimal digits, case-insensitive.
        """
        return self._call(_endpoints.WALLET_PNL, {"address": address}, {})
