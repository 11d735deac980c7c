"""Leaderboards have the profit made within their window."""

from alembic import op

revision, down_revision = "0005", "0004"


def upgrade() -> None:
    op.execute("alter table leaderboards add column window_pnl_usd bigint")
    op.execute("comment on column leaderboards.by is 'volume, pnl or window_pnl'")
    op.execute(
        "comment on column leaderboards.pnl_usd is 'Of positions traded in the window, since they were opened'"
    )
    op.execute(
        "comment on column leaderboards.window_pnl_usd is 'Earned within the window; null: not known of all of it'"
    )


def downgrade() -> None:
    op.execute("delete from leaderboards where by = 'window_pnl'")
    op.execute("alter table leaderboards drop column window_pnl_usd")
    op.execute("comment on column leaderboards.by is 'volume or pnl'")
    op.execute("comment on column leaderboards.pnl_usd is null")
