"""Events delivered to your own URL, signed and in order.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, UnsetType

from presage_client import _endpoints
from presage_client._async_operations.base import AsyncBaseOperations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from presage_client import records


class AsyncWebhooksOperations(AsyncBaseOperations):
    """Events delivered to your own URL, signed and in order."""

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
        2xx) is attempted ten times within 76 hours, and later events wait for it. First of all the receiver is sent
        `webhook.challenge` and has to answer with `data.challenge`, as plain text or as `{"challenge": "…"}`; until
        then the webhook is `pending` and receives nothing else. Below the top tier, `trade` needs `markets` or a
        `min_usd` of at least 100, and `onchain_trade` one of these or `wallets`. Addresses that are not on the
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
        delivered; deliveries pending before are kept, and delivered once it is enabled. A new `url` is challenged
        as at creation; meanwhile deliveries wait.

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

    async def verify_webhook(self, id: str) -> records.Webhook:
        """Challenge a webhook's receiver again.

        Sends `webhook.challenge`, with a single attempt, if the webhook is `pending`. Any earlier challenge is no
        longer accepted. An account can send ten a day for each webhook that its tier allows.

        Credits: 0.

        Args:
            id: The webhook's `id`.
        """
        return await self._call(_endpoints.VERIFY_WEBHOOK, {"id": id}, {})

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
