"""Markets of a category are counted by day, so that lists skip whole days; all titles of a market are searched as one."""

from pathlib import Path

from alembic import op

from sql import timescale

revision, down_revision = "0021", "0020"

FOLDER = Path(__file__).with_suffix("")


def upgrade() -> None:
    _run("up")


def downgrade() -> None:
    _run("down")


def _run(name: str) -> None:
    for statement in timescale.statements(FOLDER / f"{name}.sql"):
        op.execute(statement)
