"""`volume_24h_usd` is what is recorded here, everywhere; the exchange's own figure has a name of its own."""

from pathlib import Path

from alembic import op

from sql import timescale

revision, down_revision = "0004", "0003"

FOLDER = Path(__file__).with_suffix("")


def upgrade() -> None:
    _run("up")


def downgrade() -> None:
    _run("down")


def _run(name: str) -> None:
    for statement in timescale.statements(FOLDER / f"{name}.sql"):
        op.execute(statement)
