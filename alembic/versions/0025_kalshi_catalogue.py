"""The catalogue of a second exchange: names are counted by exchange, and its discovery has a clock."""

from pathlib import Path

from alembic import op

from sql import timescale

revision, down_revision = "0025", "0024"

FOLDER = Path(__file__).with_suffix("")


def upgrade() -> None:
    _run("up")


def downgrade() -> None:
    _run("down")


def _run(name: str) -> None:
    for statement in timescale.statements(FOLDER / f"{name}.sql"):
        op.execute(statement)
