"""What cannot be, and so goes to quarantine instead of a table."""

from upstream.polymarket.market_channel.socket import LastTrade

PRICE_MAX = 1_000_000
SIZE_MAX = 10**15  # a thousand million shares
AHEAD_MS = 600_000  # an instant further ahead of our clock is impossible
TRADE_AGE_MS = 7 * 86_400_000  # a live print is younger than this
EPOCH_MS = 1_500_000_000_000  # 2017: before there was any such exchange


def instant_fault(ts_ms: int, now_ms: int) -> str:
    """Say what is wrong with an instant of a book; "" when nothing is."""
    return "" if EPOCH_MS < ts_ms < now_ms + AHEAD_MS else f"impossible instant {ts_ms}"


def trade_fault(trade: LastTrade, now_ms: int) -> str:
    """Say what is wrong with a trade; "" when nothing is."""
    if not 0 < trade.price <= PRICE_MAX:
        return f"impossible price {trade.price}"
    if not 0 < trade.size <= SIZE_MAX:
        return f"impossible size {trade.size}"
    if not now_ms - TRADE_AGE_MS < trade.ts_ms < now_ms + AHEAD_MS:
        return f"impossible instant {trade.ts_ms}"
    return ""
