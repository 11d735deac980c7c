"""Lists of markets are read from bitmaps, and from a table of the active ones; the next revision fills both."""

from pathlib import Path

from alembic import op

from sql import timescale

revision, down_revision = "0017", "0016"

FOLDER = Path(__file__).with_suffix("")


def upgrade() -> None:
    _run("up")


def downgrade() -> None:
    _run("down")


def _run(name: str) -> None:
    for statement in timescale.statements(FOLDER / f"{name}.sql"):
        op.execute(statement)
