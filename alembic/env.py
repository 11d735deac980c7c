"""How a migration runs: one at a time, impatient of locks, each revision in its own transaction."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import context

from config import settings
from sql import database, migrate
from sql.tables import metadata

# Any number will do, as long as it stays the same: it keeps two migrations of one database apart.
LOCK = 0x50726573616765
LOCK_POLL_S, MAX_LOCK_WAIT_S = 0.2, 1200
AGGREGATES = {name for name, table in metadata.tables.items() if table.info.get("timescale") == "aggregate"}


def database_url() -> str:
    """The URL that the caller gave, or else the environment's."""
    if given := context.config.attributes.get("url"):
        return str(given)
    if configured := settings.get().database_url:
        return configured.get_secret_value()
    raise SystemExit("Set DATABASE_URL to the database to migrate")


def include_name(name: str | None, kind: str, parents: object) -> bool:  # noqa: ARG001 (Alembic calls with all three)
    """Do not look for the aggregates in the database: tables on one licence, views on the other."""
    return not (kind == "table" and name in AGGREGATES)


def include_object(item: object, name: str | None, kind: str, *_: object) -> bool:  # noqa: ARG001
    """Do not ask for the aggregates either: sql/timescale/ makes them."""
    return include_name(name, kind, None)


def offline() -> None:
    """Write the SQL instead of running it."""
    context.configure(
        dialect_name="postgresql", target_metadata=metadata, literal_binds=True, dialect_opts={"paramstyle": "named"}
    )
    with context.begin_transaction():
        context.run_migrations()


def online() -> None:
    """Run against the database, under a lock that a second migration waits for."""
    url = database_url()
    # In the connection's own options: a statement before the migration would open a transaction, and break blocks.
    patience = context.config.attributes.get("lock_timeout", migrate.LOCK_TIMEOUT)
    options = database.server_options(url, lock_timeout=patience, statement_timeout="10min")
    engine = sa.create_engine(
        database.sqlalchemy_url(url),
        poolclass=sa.pool.NullPool,
        connect_args={"options": options, "application_name": "presage migrate"},
    )
    # The lock has a connection of its own for the same reason.
    with database.connect(url, autocommit=True, name="presage migrate lock") as lock:
        # Asked again and again: a statement that waits has a snapshot, which building an index concurrently waits for.
        gives_up_at = time.monotonic() + MAX_LOCK_WAIT_S
        while lock.execute("select pg_try_advisory_lock(%s)", [LOCK]).fetchone() != (True,):
            if time.monotonic() > gives_up_at:
                raise SystemExit(
                    f"another migration of this database has been running for {MAX_LOCK_WAIT_S // 60} minutes"
                )
            time.sleep(LOCK_POLL_S)
        with engine.connect() as connection:
            context.configure(
                connection=connection,
                target_metadata=metadata,
                include_name=include_name,
                include_object=include_object,
                compare_server_default=True,
                transaction_per_migration=True,
                on_version_apply=context.config.attributes.get("on_version_apply", ()),
            )
            with context.begin_transaction():
                context.run_migrations()


if context.is_offline_mode():
    offline()
else:
    online()
