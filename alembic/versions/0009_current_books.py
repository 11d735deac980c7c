"""A live book is written now and then; views add the changes stored since."""

from pathlib import Path

from alembic import op

from sql import timescale

revision, down_revision = "0009", "0008"

FOLDER = Path(__file__).with_suffix("")


def upgrade() -> None:
    _run("up")


def downgrade() -> None:
    _run("down")


def _run(name: str) -> None:
    for statement in timescale.statements(FOLDER / f"{name}.sql"):
        op.execute(statement)
