"""The exchange's own state: what is trading, its hours, where historical data begins, and an account's limits."""

from __future__ import annotations

from datetime import datetime

import msgspec

from upstream.transport.numbers import instant

COMBOS = 1  # exchange_index


class ShardStatus(msgspec.Struct, frozen=True):
    """State of a part of the exchange: 0 everything else, 1 combos, 2 crypto and commodities, 3 some sports."""

    exchange_index: int
    exchange_active: bool
    trading_active: bool
    description: str | None = None


class ExchangeStatus(msgspec.Struct, frozen=True):
    """{"exchange_active":true,"trading_active":true,"intra_exchange_transfers_active":true,"exchange_index_statuses":
    [{"exchange_index":2,"description":"Crypto","exchange_active":true,"trading_active":true,…}]}

    The top level is part 0.
    """  # noqa: D205

    exchange_active: bool
    trading_active: bool
    exchange_index_statuses: list[ShardStatus] | None = None
    exchange_estimated_resume_time: str | None = None

    def trading(self, exchange_index: int = 0) -> bool:
        """Return whether a part of the exchange is trading; one that is not listed is as the whole."""
        for shard in self.exchange_index_statuses or ():
            if shard.exchange_index == exchange_index:
                return shard.exchange_active and shard.trading_active
        return self.exchange_active and self.trading_active

    def is_paused(self) -> bool:
        """Return whether no part of the exchange is trading; combos, which are not recorded, apart."""
        parts = {0, *(shard.exchange_index for shard in self.exchange_index_statuses or ())} - {COMBOS}
        return not any(self.trading(part) for part in parts)

    def resumes_at(self) -> datetime | None:
        """Return when it expects to be back, if it says so."""
        return instant(self.exchange_estimated_resume_time)


class Hours(msgspec.Struct, frozen=True):
    """{"open_time":"00:00","close_time":"03:00"}, in the time of New York."""

    open_time: str
    close_time: str


class Week(msgspec.Struct, frozen=True):
    """{"start_time":…,"end_time":…,"monday":[{"open_time":"00:00","close_time":"03:00"}],…}"""

    start_time: str | None = None
    end_time: str | None = None
    monday: list[Hours] = []
    tuesday: list[Hours] = []
    wednesday: list[Hours] = []
    thursday: list[Hours] = []
    friday: list[Hours] = []
    saturday: list[Hours] = []
    sunday: list[Hours] = []


class Maintenance(msgspec.Struct, frozen=True):
    """{"start_datetime":…,"end_datetime":…}"""

    start_datetime: str
    end_datetime: str


class Schedule(msgspec.Struct, frozen=True):
    """{"standard_hours":[…],"maintenance_windows":[…]}"""

    standard_hours: list[Week] = []
    maintenance_windows: list[Maintenance] = []


class Cutoff(msgspec.Struct, frozen=True):
    """Before these times markets (by settlement) and trades are in historical data only."""

    markets: datetime
    trades: datetime


class SentCutoff(msgspec.Struct):
    """{"market_settled_ts":"2026-03-25T00:00:00Z","trades_created_ts":"2026-03-25T00:00:00Z","orders_updated_ts":…}"""

    market_settled_ts: str
    trades_created_ts: str

    def cutoff(self) -> Cutoff:
        """Return the times; ValueError if they are none."""
        markets, trades = instant(self.market_settled_ts), instant(self.trades_created_ts)
        if markets is None or trades is None:
            raise ValueError(f"not times: {self.market_settled_ts!r:.40}, {self.trades_created_ts!r:.40}")
        return Cutoff(markets, trades)


class TokenLimit(msgspec.Struct, frozen=True):
    """{"refill_rate":200,"bucket_capacity":200}: tokens a second, and at once."""

    refill_rate: float
    bucket_capacity: float


class AccountLimits(msgspec.Struct, frozen=True):
    """{"usage_tier":"basic","read":{"refill_rate":200,"bucket_capacity":200},"write":{…},"grants":[]}"""

    usage_tier: str
    read: TokenLimit
