"""A temporary database for a benchmark."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Bench(NamedTuple):
    """The benchmark's folder, database URL and psql."""

    folder: Path
    url: str
    psql: Path


@contextlib.contextmanager
def fresh(report: Callable[[str], None]) -> Iterator[Bench]:
    """Start an embedded server with the schema, with the same settings as the demo's."""
    from sql import migrate
    from sql.embedded import Cluster

    with tempfile.TemporaryDirectory(prefix="presage-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # the server may run as another user, who needs access
        with Cluster(folder / "database") as cluster:
            cluster.create_database("presage")
            migrate.upgrade(cluster.url("presage"))
            report(f"database in {folder}")
            yield Bench(folder, cluster.url("presage"), cluster.install().program("psql"))
