"""The live feed is followed in shards: a gap may concern the markets of one of them."""

from pathlib import Path

from alembic import op

from sql import timescale

revision, down_revision = "0011", "0010"

FOLDER = Path(__file__).with_suffix("")


def upgrade() -> None:
    _run("up")


def downgrade() -> None:
    _run("down")


def _run(name: str) -> None:
    for statement in timescale.statements(FOLDER / f"{name}.sql"):
        op.execute(statement)
