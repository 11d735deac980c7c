"""No statistics of what no query looks for, a book's levels above all; those of live rows are gathered less often."""

from pathlib import Path

from alembic import op

from sql import timescale

revision, down_revision = "0031", "0030"

FOLDER = Path(__file__).with_suffix("")


def upgrade() -> None:
    _run("up")


def downgrade() -> None:
    _run("down")


def _run(name: str) -> None:
    for statement in timescale.statements(FOLDER / f"{name}.sql"):
        op.execute(statement)
