"""Receivers of webhooks are verified, and each account has a budget of messages a day."""

from pathlib import Path

from alembic import op

from sql import timescale

revision, down_revision = "0012", "0011"

FOLDER = Path(__file__).with_suffix("")


def upgrade() -> None:
    _run("up")


def downgrade() -> None:
    _run("down")


def _run(name: str) -> None:
    for statement in timescale.statements(FOLDER / f"{name}.sql"):
        op.execute(statement)
