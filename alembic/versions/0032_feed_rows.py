"""A type of the rows of live state that the feed sends, without a temporary table."""

from pathlib import Path

from alembic import op

from sql import timescale

revision, down_revision = "0032", "0031"

FOLDER = Path(__file__).with_suffix("")


def upgrade() -> None:
    for statement in timescale.statements(FOLDER / "up.sql"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("drop type feed_row")
