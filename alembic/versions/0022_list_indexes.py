"""Indexes for deep pages of categories and for searches in one text of a market replace those of before.

Built and dropped without blocking readers and writers of markets, outside of a transaction. What an interrupted build
has left is removed, so an interrupted migration can be run again.
"""

from alembic import context, op

revision, down_revision = "0022", "0021"

NEW = {
    "markets_titles_idx": "gin (market_titles(question, slug, event_title) gin_trgm_ops)",
    "markets_category_created_idx": "btree "
    "(category, exchange, status, coalesce(created_at, '-infinity'::timestamptz) desc, market_key desc)",
    "markets_category_end_idx": "btree "
    "(category, exchange, status, coalesce(end_time, 'infinity'::timestamptz), market_key)",
}
OLD = {
    "markets_title_idx": "gin (question gin_trgm_ops, slug gin_trgm_ops, event_title gin_trgm_ops)",
    "markets_category_created_at_idx": "btree (category, status, created_at desc nulls last)",
    "markets_category_end_time_idx": "btree (category, status, end_time)",
}


def upgrade() -> None:
    _replace(OLD, NEW)


def downgrade() -> None:
    _replace(NEW, OLD)


def _replace(former: dict[str, str], later: dict[str, str]) -> None:
    """Build the later indexes, then drop the former ones, which are used until then."""
    if context.is_offline_mode():  # nobody else is there, and the script may be run as one transaction
        for name, columns in later.items():
            op.execute(f"create index {name} on markets using {columns}")
        for name in former:
            op.execute(f"drop index {name}")
        return
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = '5min'")  # it waits for other transactions to end, and nobody waits for it
        for name, columns in later.items():
            op.execute(f"drop index concurrently if exists {name}")
            op.execute(f"create index concurrently {name} on markets using {columns}")
        for name in former:
            op.execute(f"drop index concurrently if exists {name}")
        op.execute("reset lock_timeout")
