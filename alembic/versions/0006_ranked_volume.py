"""Each place of the markets' ranking has the figure that it was ranked by."""

from alembic import op

revision, down_revision = "0006", "0005"


def upgrade() -> None:
    op.execute("alter table market_rankings add column value_usd bigint")
    op.execute(
        "comment on column market_rankings.value_usd is 'What it is ranked by: USD of 24 hours, over all outcomes'"
    )


def downgrade() -> None:
    op.execute("alter table market_rankings drop column value_usd")
