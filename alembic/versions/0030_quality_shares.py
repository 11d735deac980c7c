"""Which share of the markets the last quality pass checked."""

from pathlib import Path

from alembic import op

from sql import timescale

revision, down_revision = "0030", "0029"

FOLDER = Path(__file__).with_suffix("")


def upgrade() -> None:
    _run("up")


def downgrade() -> None:
    _run("down")


def _run(name: str) -> None:
    for statement in timescale.statements(FOLDER / f"{name}.sql"):
        op.execute(statement)
