"""Everything that the first release has.

Frozen: this is release 0.1.0. Its SQL stands in the folder beside, as `sql/` made it that day; tests/sql/released.txt
holds the digest of each file.
"""

from pathlib import Path

from alembic import op

from sql import migrate, timescale

revision, down_revision = "0001", None

FOLDER = Path(__file__).with_suffix("")


def upgrade() -> None:
    for extension in ("timescaledb", "pg_trgm"):
        op.execute(f"create extension if not exists {extension}")
    for name in ("tables", f"candles_{migrate.current_license()}", "views"):
        _run(name)


def downgrade() -> None:
    _run(f"drop_{migrate.current_license()}")
    # The extensions stay: they may have been there before us, and others may use them.


def _run(name: str) -> None:
    for statement in timescale.statements(FOLDER / f"{name}.sql"):
        op.execute(statement)
