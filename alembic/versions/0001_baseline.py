"""Everything that the first release has.

Until that release this baseline is edited, and runs the files of sql/ themselves. Then its text is frozen, and changes are new
migrations.
"""

from alembic import context, op

from sql import database, timescale

revision, down_revision = "0001", None


def upgrade() -> None:
    for extension in ("timescaledb", "pg_trgm"):
        op.execute(f"create extension if not exists {extension}")
    for statement in timescale.create(_license()):
        op.execute(statement)


def downgrade() -> None:
    for statement in timescale.drop(_license()):
        op.execute(statement)
    # The extensions stay: they may have been there before us, and others may use them.


def _license() -> database.License:
    if context.is_offline_mode():
        return context.config.attributes["license"]
    return op.get_bind().exec_driver_sql(database.LICENSE).scalar_one()
