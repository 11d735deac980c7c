"""Dagster resources of assets and sensors: the database and the exchanges."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import dagster as dg

from sql import database

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from config.settings import Settings


class Database(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The market database: PostgreSQL with TimescaleDB."""

    url: str

    @contextmanager
    def connection(self, *, autocommit: bool = False, name: str = "presage") -> Iterator[psycopg.Connection]:
        """Open a connection for a block: committed if the block succeeds, closed in any case."""
        with database.connect(self.url, autocommit=autocommit, name=name) as conn:
            yield conn


class Exchange(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The exchanges' addresses, and the name under which their data is stored."""

    gamma_url: str
    clob_url: str
    clob_socket_url: str
    data_api_url: str
    kalshi_url: str = ""
    kalshi_socket_url: str = ""
    source: str = "exchange"


def resources(settings: Settings) -> dict[str, object]:
    """Return this environment's resources; the database address stays an environment variable: no page shows it."""
    return {
        "database": Database(url=dg.EnvVar("DATABASE_URL")),
        "exchange": Exchange(
            gamma_url=settings.gamma_url,
            clob_url=settings.clob_url,
            clob_socket_url=settings.clob_socket_url,
            data_api_url=settings.data_api_url,
            kalshi_url=settings.kalshi_url,
            kalshi_socket_url=settings.kalshi_socket_url,
            source=settings.source,
        ),
    }
