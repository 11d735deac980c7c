"""REST client. Without a key everything but the account's limits can be read."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from upstream.kalshi.rest.catalogue import HISTORICAL_MARKETS, LIVE_MARKETS, CatalogueClient
from upstream.kalshi.rest.exchange import AccountLimits, ExchangeStatus, Schedule
from upstream.kalshi.rest.requests import URL
from upstream.kalshi.rest.tape import TapeClient
from upstream.transport.errors import Malformed
from upstream.transport.limits import SHARE, Bucket
from upstream.transport.numbers import MICRO

__all__ = ["HISTORICAL_MARKETS", "LIVE_MARKETS", "URL", "Kalshi"]

COST = 10
"""Tokens of one request."""
UNAVAILABLE = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)


class _Schedule(msgspec.Struct):
    schedule: Schedule


_status = msgspec.json.Decoder(ExchangeStatus)
_schedule = msgspec.json.Decoder(_Schedule)
_limits = msgspec.json.Decoder(AccountLimits)


class Kalshi(CatalogueClient, TapeClient):
    """Client of the public REST endpoints. Filters are the exchange's own: `status="open"`, `series_ticker="KXFED"`.

    Unreadable objects go to `on_refused`.
    """

    def status(self) -> ExchangeStatus:
        """Fetch what is trading now; it is answered even while the exchange is not available."""
        return self._get("/exchange/status", _status, answers=UNAVAILABLE)

    def schedule(self) -> Schedule:
        """Fetch the trading hours."""
        return self._get("/exchange/schedule", _schedule).schedule

    def read_limits(self) -> AccountLimits:
        """Fetch what the account may ask for, and keep to it from now on; needs a key."""
        limits = self._get("/account/limits", _limits, signed=True)
        if not (0 < limits.read.refill_rate <= MICRO and COST <= limits.read.bucket_capacity <= MICRO):
            raise Malformed(f"/account/limits: not limits: {limits.read}")
        bucket = Bucket(limits.read.bucket_capacity / COST, limits.read.refill_rate / COST * SHARE)
        self.client.limits.replace(self.url, bucket)
        return limits
