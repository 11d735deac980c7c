"""Every table, declared once: for Alembic, for dynamic filters, and for reading.

Prices, sizes and USD amounts are bigint micro-units (10⁻⁶, as on the chain). Times are timestamptz in UTC. What
SQLAlchemy cannot declare (hypertables, aggregates, triggers, functions) is in `sql/timescale/`. A table whose `info`
has `timescale` is created there: `hypertable` turns it into one, `aggregate` makes it a continuous aggregate or, on the
Apache licence, a trigger-kept table.
"""

from sql.tables.accounts import account_tokens, accounts, api_keys, credit_leases, credit_usage, registrations, tiers
from sql.tables.analysis import analysis_parameters, signals
from sql.tables.audit import audit_counts, audit_log, ended_keys
from sql.tables.base import metadata
from sql.tables.books import book_anchors, book_packs, tick_sizes
from sql.tables.catalogue import (
    category_days,
    events,
    market_bitmaps,
    market_rankings,
    market_status_changes,
    markets,
    open_markets,
    tokens,
)
from sql.tables.chain import (
    chain_blocks,
    chain_checks,
    chain_contracts,
    chain_heads,
    chain_ranges,
    chain_tokens,
    data_incidents,
    ledger_entries,
    settlements,
    wallet_fills,
)
from sql.tables.coverage import coverage_days, coverage_market_days
from sql.tables.equivalents import equivalents
from sql.tables.exports import exports
from sql.tables.lake import iceberg_namespace_properties, iceberg_tables, lake_days
from sql.tables.live import (
    live_books,
    live_prices,
    market_activity,
    market_stats_24h,
    market_weeks,
    name_counts,
    taxonomy_counts,
)
from sql.tables.pipeline import (
    coverage_gaps,
    feed_hosts,
    feed_leases,
    feed_stats,
    quarantine,
    settings,
    stage_clocks,
)
from sql.tables.quality import quality_checks, quality_results, quality_suites
from sql.tables.series import (
    book_events,
    candle_refreshes,
    candles_1h,
    candles_1m,
    candles_due,
    quotes,
    stream_blocks,
    stream_head,
    trades,
)
from sql.tables.wallets import (
    leaderboards,
    position_changes,
    positions_due,
    positions_head,
    wallet_activity,
    wallet_days,
    wallet_hours,
    wallet_positions,
    wallet_totals,
    wallets_followed,
    wallets_watched,
)
from sql.tables.webhooks import webhook_deliveries, webhook_head, webhooks

__all__ = [
    "account_tokens",
    "accounts",
    "analysis_parameters",
    "api_keys",
    "audit_counts",
    "audit_log",
    "book_anchors",
    "book_events",
    "book_packs",
    "candle_refreshes",
    "candles_1h",
    "candles_1m",
    "candles_due",
    "category_days",
    "chain_blocks",
    "chain_checks",
    "chain_contracts",
    "chain_heads",
    "chain_ranges",
    "chain_tokens",
    "coverage_days",
    "coverage_gaps",
    "coverage_market_days",
    "credit_leases",
    "credit_usage",
    "data_incidents",
    "ended_keys",
    "equivalents",
    "events",
    "exports",
    "feed_hosts",
    "feed_leases",
    "feed_stats",
    "iceberg_namespace_properties",
    "iceberg_tables",
    "lake_days",
    "leaderboards",
    "ledger_entries",
    "live_books",
    "live_prices",
    "market_activity",
    "market_bitmaps",
    "market_rankings",
    "market_stats_24h",
    "market_status_changes",
    "market_weeks",
    "markets",
    "metadata",
    "name_counts",
    "open_markets",
    "position_changes",
    "positions_due",
    "positions_head",
    "quality_checks",
    "quality_results",
    "quality_suites",
    "quarantine",
    "quotes",
    "registrations",
    "settings",
    "settlements",
    "signals",
    "stage_clocks",
    "stream_blocks",
    "stream_head",
    "taxonomy_counts",
    "tick_sizes",
    "tiers",
    "tokens",
    "trades",
    "wallet_activity",
    "wallet_days",
    "wallet_fills",
    "wallet_hours",
    "wallet_positions",
    "wallet_totals",
    "wallets_followed",
    "wallets_watched",
    "webhook_deliveries",
    "webhook_head",
    "webhooks",
]
