"""Plausibility checks: impossible values go to quarantine instead of a table."""

from upstream.polymarket.market_channel.socket import LastTrade
from upstream.transport.numbers import MICRO

MAX_PRICE = MICRO
MAX_SIZE = 10**15  # a thousand million shares
MAX_AHEAD_MS = 600_000  # a timestamp further ahead of our clock is impossible
MAX_TRADE_AGE_MS = 7 * 86_400_000  # a live trade is younger than this
EPOCH_MS = 1_500_000_000_000  # 2017: before the exchange existed


def instant_fault(ts_ms: int, now_ms: int) -> str:
    """Return what is wrong with a book's timestamp, or ""."""
    return "" if EPOCH_MS < ts_ms < now_ms + MAX_AHEAD_MS else f"impossible instant {ts_ms}"


def trade_fault(trade: LastTrade, now_ms: int) -> str:
    """Return what is wrong with a trade, or ""."""
    if not 0 < trade.price <= MAX_PRICE:
        return f"impossible price {trade.price}"
    if not 0 < trade.size <= MAX_SIZE:
        return f"impossible size {trade.size}"
    if not now_ms - MAX_TRADE_AGE_MS < trade.ts_ms < now_ms + MAX_AHEAD_MS:
        return f"impossible instant {trade.ts_ms}"
    return ""
