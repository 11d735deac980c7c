"""Fixtures: a real server for all tests, a separate database for each test that commits, and factories of rows.

`conn` is a connection whose transaction is rolled back. A test with other connections (a server, a pool, threads) uses
`database_url`: a fresh database with the whole schema. If it also uses `conn`, that one connects to the same database
and commits each statement, so that the others see what the factories add.
"""

from __future__ import annotations

import functools
import gc
import os
import re
import shutil
import signal
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import hypothesis
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from sql import database, migrate
from sql.embedded import Cluster
from tests import databases, factories, roles
from tests.chain import Anvil, Chain, FaultyRpc
from tests.community import Community
from tests.hours.late import LATE_S, jump

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.databases import Server

ROOT = Path(__file__).parent.parent
# The data does not outlive the tests, and no test covers a power failure.
NO_DURABILITY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
# No TimescaleDB workers: each database would get one, and none can be copied or dropped while its worker is connected.
NO_WORKERS = {"timescaledb.max_background_workers": "0"}
# Each database that is dropped is looked for in all buffers: in the product's gigabytes that took a tenth of its time.
FEW_BUFFERS = {"shared_buffers": "128MB"}
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 2 << 30

# Deadlines measure the machine more than the code, and so does how long it takes to make an example.
SLOW = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture]
# The same examples each time: only `make fuzz` searches for new ones.
hypothesis.settings.register_profile(
    "default", deadline=None, max_examples=25, derandomize=True, suppress_health_check=SLOW
)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=5000, suppress_health_check=SLOW)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


pytest_plugins = ["tests.licences"]

# The imports and the tests themselves are millions of objects that stay: looking through them for garbage again and
# again took a third of the time in which tests are collected.
gc.set_threshold(100_000, 50, 50)

# Tests that read the clock: through the schema's queries, the simulated exchange, or in their own source.
CLOCKED = {"cluster", "conn", "community", "sandbox"}
READS_CLOCK = re.compile(r"\bnow\(|\butcnow\(|\btoday\(|\btime\(\)|\bnow_ms\(|\bcurrent_date\b|\bSandbox\(")

SLOWEST = (
    "tests/cli/stack/test_demo.py",
    "tests/api/fuzz/test_fuzz.py",
    "tests/deployment/test_compose.py",
    "tests/replay/test_exact.py",
    "tests/api/metering/test_metering_servers.py",
    "tests/orchestration/ingest/test_feed.py",
    "tests/orchestration/ingest/test_shards.py",
)

# A shell that runs the tests in the background ignores interrupts; the programs that they start and interrupt must not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test-hours` runs, and start with the slowest files, so that no worker ends with one alone."""
    items.sort(key=lambda item: not item.nodeid.startswith(SLOWEST))
    reads = functools.cache(lambda path: READS_CLOCK.search(path.read_text()) is not None)
    for item in items:
        if item.get_closest_marker("file_times"):
            continue
        if CLOCKED.intersection(getattr(item, "fixturenames", ())) or reads(item.path):
            item.add_marker(pytest.mark.clock)


def pytest_collection_finish() -> None:
    """Exempt what is loaded from garbage collection, and let the clock jump where tests are to run late."""
    gc.freeze()
    if late := os.environ.get(LATE_S):
        jump(int(late))


class GivenServer:
    """The server in PRESAGE_TEST_DATABASE_URL."""

    def __init__(self, url: str) -> None:
        self.given = url

    def url(self, database: str = "postgres") -> str:
        return urlsplit(self.given)._replace(path=f"/{database}").geturl()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Server]:
    """The database server of the session: an embedded one, or the one in PRESAGE_TEST_DATABASE_URL."""
    if given := os.environ.get("PRESAGE_TEST_DATABASE_URL"):
        yield GivenServer(given)
        return
    # A database has a thousand small files: copied in 20 ms in memory, in up to 400 ms on a busy disk.
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED
    with tempfile.TemporaryDirectory(prefix="presage-", dir=MEMORY if in_memory else None) as folder:
        Path(folder).chmod(0o755)  # as root the server runs as another user
        with Cluster(Path(folder) / "database", settings=NO_DURABILITY | NO_WORKERS | FEW_BUFFERS) as server:
            yield server


@pytest.fixture
def named_databases(cluster: Server) -> Iterator[None]:
    """Lock for tests whose databases have fixed names: on a given server, other processes may run tests too."""
    with databases.administering(cluster) as admin:
        admin.execute("set statement_timeout = 0")
        admin.execute("select pg_advisory_lock(hashtextextended('presage tests: named databases', 0))")
        yield


@pytest.fixture(scope="session")
def template(cluster: Server) -> Iterator[str]:
    """The name of a migrated database without connections: copy it with `create database … template …`."""
    with databases.new_database(cluster) as url, databases.administering(cluster) as admin:
        migrate.upgrade(url)
        roles.ensure(admin, url)
        name = conninfo_to_dict(url)["dbname"]
        # A given server may have TimescaleDB workers. They skip a database that allows no connections; one already
        # connected is terminated. A copy, unlike its template, allows connections.
        admin.execute(sql.SQL("alter database {} allow_connections false").format(sql.Identifier(name)))
        admin.execute("select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = %s", [name])
        yield name


@pytest.fixture(scope="session")
def new_database(cluster: Server, template: str) -> Callable[[], AbstractContextManager[str]]:
    """`with new_database() as url:` yields a fresh database with the whole schema; for fixtures of a wider scope."""
    return functools.partial(databases.new_database, cluster, template)


@pytest.fixture
def database_url(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    """The URL of a fresh database with the whole schema, dropped after the test."""
    with new_database() as url:
        yield url


@pytest.fixture(scope="session")
def _shared_url(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    """A database in which nothing is committed."""
    with new_database() as url:
        yield url


class KeptConnection:
    """A connection that one test after the other uses: its server process knows the catalogue already.

    What a test does is rolled back, with its settings and roles; the session's locks and the object's own settings are
    reset. One that a test has closed or broken is replaced.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._conn: psycopg.Connection[Any] | None = None

    def begin(self) -> psycopg.Connection[Any]:
        if self._conn is None or self._conn.closed:
            self._conn = database.connect(self._url, name="presage test")
        # Psycopg would drop all prepared statements after a rollback, the application's own too.
        self._conn.prepare_threshold, self._conn.row_factory = None, psycopg.rows.tuple_row
        # Begun: a `conn.transaction()` of the code under test is a savepoint, not a commit.
        self._conn.execute("select")
        return self._conn

    def end(self) -> None:
        if self._conn is not None and not self._conn.closed:
            self._conn.rollback()
            self._conn.execute("select pg_advisory_unlock_all()")
            self._conn.rollback()

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()


@pytest.fixture(scope="session")
def _kept_connection(_shared_url: str) -> Iterator[KeptConnection]:
    kept = KeptConnection(_shared_url)
    yield kept
    kept.close()


@pytest.fixture
def conn(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A connection that is rolled back after the test; see the module docstring for use with `database_url`."""
    if "database_url" in request.fixturenames:
        url = request.getfixturevalue("database_url")
        with closing(database.connect(url, autocommit=True, name="presage test")) as connection:
            yield connection
            return
    kept = request.getfixturevalue("_kept_connection")
    try:
        yield kept.begin()
    finally:
        kept.end()


@pytest.fixture(scope="session")
def _community_process() -> Iterator[Community]:
    with Community() as process:
        yield process


@pytest.fixture
def community(_community_process: Community) -> Community:
    """TimescaleDB under its Community licence, in WebAssembly: a fresh database with the whole schema."""
    _community_process.fresh()
    return _community_process


@pytest.fixture(scope="session")
def anvil() -> Iterator[Anvil]:
    """A real EVM node with the tests' contracts, for the session; see `tests.chain`."""
    with Anvil() as node:
        yield node


@pytest.fixture
def chain(anvil: Anvil) -> Chain:
    """The node's chain, at genesis."""
    return Chain(anvil)


@pytest.fixture
def faulty_rpcs(chain: Chain) -> Iterator[Callable[[int], list[FaultyRpc]]]:
    """`faulty_rpcs(2)`: as many endpoints before the node, each with faults of its own."""
    with ExitStack() as stack:
        yield lambda count: [stack.enter_context(FaultyRpc(chain.url)) for _ in range(count)]


@pytest.fixture
def faulty_rpc(faulty_rpcs: Callable[[int], list[FaultyRpc]]) -> FaultyRpc:
    """A proxy of the node that can inject faulty responses."""
    return faulty_rpcs(1)[0]


@pytest.fixture
def add_market(conn: psycopg.Connection[Any]) -> Callable[..., dict[str, Any]]:
    """`add_market("rain-tomorrow", status="CLOSED")` inserts a market and its tokens, and returns the market's row."""
    return functools.partial(factories.add_market, conn)


@pytest.fixture
def add_trades(conn: psycopg.Connection[Any]) -> Callable[..., list[dict[str, Any]]]:
    """`add_trades(market, [{"price": "0.52", "size": 10}], outcome=0)` inserts trades, and returns their rows."""
    return functools.partial(factories.add_trades, conn)


@pytest.fixture(scope="session")
def recorded() -> Path:
    """The folder of recordings of the exchange."""
    folder = (ROOT / "../shared/recorded").resolve()
    assert folder.is_dir(), f"the recordings are missing: {folder}"
    return folder
