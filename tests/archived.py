"""An embedded server that archives into a repository, and commits whose times the server itself recorded."""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

from config.settings import Settings
from sql import database, migrate
from sql.backup.base import options, repository
from sql.embedded import Cluster
from tests import factories
from tests.ports import free_port

PASSPHRASE = "a passphrase that nobody guesses"
DATABASE = "exchange"
# The data does not outlive the tests, and commits are those of the tests alone.
SETTINGS = {"shared_buffers": "32MB", "track_commit_timestamp": "on", "fsync": "off", "autovacuum": "off"}
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 2 << 30


class Archived:
    """The server, its settings, and its repository in a folder."""

    def __init__(self, folder: Path, **given) -> None:
        port = free_port()
        self.folder = folder
        self.data_dir, self.repository = folder / "data", folder / "repository"
        self.settings = Settings(
            _env_file=None,
            **{
                "database_url": None,
                "data_dir": self.data_dir,
                "backup_repository": str(self.repository),
                "backup_passphrase": PASSPHRASE,
                **given,
            },
        )
        self.options = options.of(self.settings)
        self.archiving = repository.enable(self.data_dir, self.options)
        self.cluster = Cluster(self.data_dir / "database", port=port, settings=SETTINGS)  # a port, so a password

    @property
    def url(self):
        return self.cluster.url(DATABASE)

    def start(self):
        self.cluster.start()
        self.cluster.create_database(DATABASE)
        (self.data_dir / "started").write_text(DATABASE)

    def migrate(self):
        migrate.upgrade(self.url)
        with database.connect(self.url, autocommit=True) as conn:
            return factories.add_market(conn, "rain")

    def query(self, question, url=None):
        with database.connect(url or self.url, autocommit=True) as conn:
            cursor = conn.execute(question)
            return cursor.fetchall() if cursor.description else []

    def commit(self, market, count):
        """Insert trades, each in a transaction of its own."""
        with database.connect(self.url, autocommit=True) as conn:
            for n in range(count):
                factories.add_trades(conn, market, [{"ts": dt.datetime.now(dt.UTC), "price": f"0.{n % 80 + 11}"}])

    def commits(self):
        """Return the trades' ids by the time of their commit."""
        return self.query("select pg_xact_commit_timestamp(xmin) as at, trade_id from trades order by at", self.url)


@contextmanager
def archived(**given):
    """A folder that the server's user can enter, with a server that is stopped and removed at the end."""
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED
    folder = Path(tempfile.mkdtemp(prefix="presage-archived-", dir=MEMORY if in_memory else None))
    folder.chmod(0o755)
    made = None
    try:
        made = Archived(folder, **given)
        yield made
    finally:
        if made is not None:
            made.cluster.erase()
        shutil.rmtree(folder)


def erase(data_dir):
    """Remove a recovered cluster, which is elsewhere if the server's user cannot enter the folder."""
    Cluster(data_dir / "database").erase()
    shutil.rmtree(data_dir, ignore_errors=True)
