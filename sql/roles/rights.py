"""The rights of each role, table by table. A test asks for a line here for each table and view of the schema."""

from __future__ import annotations

from typing import NamedTuple

PIPELINE, API, SITE, ANALYST = ROLES = ("presage_pipeline", "presage_api", "presage_site", "presage_analyst")


class Rights(NamedTuple):
    """What roles may do, in PostgreSQL's letters: r select, a insert, w update, d delete, m vacuum and analyse.

    Of a view only r counts: under the Community licence, candles are views.
    Analysts have no rights on tables: they read the schema `analytics`.
    """

    pipeline: str = ""
    api: str = ""
    site: str = ""


RELATIONS = {
    # Accounts and their keys: the API's alone.
    "account_tokens": Rights("", "rad"),
    "accounts": Rights("", "raw"),
    "api_keys": Rights("", "raw"),
    "credit_leases": Rights("", "rawd"),
    "credit_usage": Rights("", "raw"),
    "registrations": Rights("", "rawd"),
    "tiers": Rights("", "r", "r"),
    # The audit trail: added to, and never changed but by the owner.
    "audit_counts": Rights("", "rawd"),
    "audit_log": Rights("", "ra"),
    "ended_keys": Rights("rd", "ra"),
    # What the API's clients ask for, and the pipeline does.
    "wallets_followed": Rights("raw", "rawd"),
    "wallets_watched": Rights("rd", "raw"),
    "webhook_budgets": Rights("r"),
    "webhook_deliveries": Rights("rawd", "rawd"),
    "webhook_head": Rights("rw", "rw"),
    "webhook_usage": Rights("raw", "raw"),
    "webhooks": Rights("rw", "rawd"),
    "delivery_records": Rights("", "r"),
    "webhook_records": Rights("", "r"),
    # Settings, but for the secrets of cursors: see sql/timescale/rights.sql.
    "settings": Rights("rawd", "r"),
    # What the pipeline writes.
    "analysis_parameters": Rights("raw"),
    "book_anchors": Rights("ra", "r"),
    "book_events": Rights("radm", "r"),
    "book_packs": Rights("rad", "r"),
    "candle_refreshes": Rights("rad"),
    "candles_1h": Rights("rawd", "r"),
    "candles_1m": Rights("rawd", "r"),
    "candles_due": Rights("rad"),
    "category_days": Rights("raw", "r"),
    "chain_blocks": Rights("rad", "r"),
    "chain_checks": Rights("rawd"),
    "chain_contracts": Rights("raw", "r"),
    "chain_heads": Rights("raw", "r"),
    "chain_ranges": Rights("rawd", "r"),
    "chain_tokens": Rights("ra", "r"),
    "coverage_days": Rights("raw", "r"),
    "coverage_gaps": Rights("rawd", "r"),
    "coverage_market_days": Rights("rawd", "r"),
    "data_incidents": Rights("rawd"),
    "equivalents": Rights("rawd", "r"),
    "events": Rights("raw", "r"),
    "exports": Rights("rawd", "r"),
    "feed_hosts": Rights("rawd"),
    "feed_leases": Rights("rawd", "r"),
    "feed_stats": Rights("ra", "r"),
    "iceberg_namespace_properties": Rights("rawd", "r"),
    "iceberg_tables": Rights("rawd", "r"),
    "lake_days": Rights("rawd", "r"),
    "leaderboards": Rights("rawd", "r"),
    "ledger_entries": Rights("rad"),
    "live_books": Rights("raw", "r"),
    "live_prices": Rights("raw", "r"),
    "market_activity": Rights("rawd", "r"),
    "market_bitmaps": Rights("rawd", "r"),
    "market_rankings": Rights("rad", "r"),
    "market_stats_24h": Rights("rawd", "r"),
    "market_status_changes": Rights("ra", "r"),
    "market_weeks": Rights("rad"),
    "markets": Rights("raw", "r"),
    "name_counts": Rights("rawd", "r"),
    "open_markets": Rights("rawd", "r"),
    "position_changes": Rights("rawd", "r"),
    "positions_due": Rights("rad", "r"),
    "positions_head": Rights("rw", "r"),
    "quality_checks": Rights("rawd"),
    "quality_results": Rights("rad"),
    "quality_suites": Rights("raw"),
    "quarantine": Rights("rad"),
    "quotes": Rights("raw", "r"),
    "settlements": Rights("rad", "r"),
    "signals": Rights("rad", "r"),
    "stage_clocks": Rights("rw", "r"),
    "stream_blocks": Rights("ra", "r"),
    "stream_head": Rights("rw", "r"),
    "taxonomy_counts": Rights("rawd", "r"),
    "tick_sizes": Rights("ra", "r"),
    "tokens": Rights("raw", "r"),
    "trades": Rights("ra", "r"),
    "wallet_activity": Rights("rad", "r"),
    "wallet_days": Rights("rawd"),
    "wallet_fills": Rights("rad", "r"),
    "wallet_hours": Rights("rawd"),
    "wallet_positions": Rights("rawd", "r"),
    "wallet_totals": Rights("rawd"),
    # Views of these.
    "alive_exchanges": Rights("r", "r"),
    "alive_feed": Rights("r", "r"),
    "book_current": Rights("r", "r"),
    "book_records": Rights("r", "r"),
    "chain_holes": Rights("r", "r"),
    "coverage_gap_records": Rights("r", "r"),
    "coverage_held": Rights("r", "r"),
    "equivalent_verdicts": Rights("r", "r"),
    "ledger_changes": Rights("r"),
    "market_records": Rights("r", "r"),
    "pipeline_status": Rights("r", "r"),
    "price_records": Rights("r", "r"),
    "ranked_markets": Rights("r", "r"),
    "signal_records": Rights("r", "r"),
    "stats_records": Rights("r", "r"),
    "wallet_coverage": Rights("r", "r"),
    # Alembic's.
    "alembic_version": Rights("r", "r", "r"),
}
# Whoever stores a webhook's secret locks the mark in `settings`, and a lock of a row asks for the right to change it.
COLUMNS = {("settings", "updated_at"): Rights("", "w")}
# Those that run with the owner's rights. All others run with the caller's, and everybody may call them.
FUNCTIONS = {
    "cursor_secrets()": (API,),
    "database_identity()": (API,),
    "page_pass_secrets()": (SITE,),
    "renew_site_key(bytea,text)": (SITE,),
    "drop_chunks_before(regclass,timestamp with time zone)": (PIPELINE,),
    "drop_stream_before(bigint)": (PIPELINE,),
    "start_candles_refresh()": (PIPELINE,),
}
