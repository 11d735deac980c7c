"""`presage up --role`: parts of the product on hosts that share nothing but the database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import httpx
import psycopg
import pytest
import typer

from cli.stack.feed_host import FeedHost, FeedRun
from cli.stack.plan import Plan
from cli.stack.plan_builder import plan
from cli.stack.plan_database import DAGSTER
from cli.stack.ports import Ports
from cli.stack.processes import guard
from cli.stack.processes.supervisor import Supervisor
from cli.stack.stack import Stack
from config.hosts import ONE_MACHINE
from config.settings import Settings
from sql import migrate
from sql.roles.rights import API, PIPELINE, SITE
from tests.orchestration.ingest.live_world import MIN_COMPARED, NO_DIFFERENCES, World, disable_listings, now_ms
from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from tests.roles import login_url
from upstream.sandbox.server import Sandbox

ROOT = Path(__file__).parents[3]
URL = "postgresql://presage@db.example.com/presage"


class Host:
    """`presage up --role …` with a name and a folder of its own."""

    def __init__(self, folder: Path, name: str, roles: str, **environment: str) -> None:
        self.name, self.folder, self.log = name, folder / name, folder / f"{name}.log"
        self.folder.mkdir(exist_ok=True)
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cli.main", "up", "--role", roles],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env={
                    **{variable: value for variable, value in os.environ.items() if variable != "DATABASE_URL"},
                    "PRESAGE_HOST_NAME": name,
                    "PRESAGE_DATA_DIR": str(self.folder),
                    **environment,
                },
            )

    def running(self) -> dict[str, str]:
        """Return the states of its programs."""
        try:
            services = json.loads((self.folder / "running.json").read_text())["services"]
        except (FileNotFoundError, ValueError):
            return {}
        return {name: service["state"] for name, service in services.items()}

    def kill(self) -> None:
        """End all of its processes without warning, as the host's loss would."""
        for pid in [self.process.pid, *guard.descendants(self.process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(PATIENCE_S) == 0, self.log.read_text()


@pytest.fixture
def hosts(tmp_path):
    """Start hosts, and stop those that still run."""
    with ExitStack() as stack:

        def start(name, roles, **environment):
            made = Host(tmp_path, name, roles, **environment)
            stack.callback(made.stop)
            return made

        yield start


def held(conn):
    """Return who runs what: (feed, host), and its role, of the runs that renew their lease."""
    rows = conn.execute(
        "select feed, host, role from feed_leases where role <> 'gone' and ready and beat_at > now() - interval '5 s'"
    )
    return {(feed, host): role for feed, host, role in rows}


@pytest.mark.timeout(900)
def test_two_hosts_run_each_feed_and_the_loss_of_one_loses_nothing(database_url, tmp_path, hosts, monkeypatch):
    disable_listings(monkeypatch)
    log = tmp_path / "truth.jsonl"
    with (
        Sandbox(simulate=5, rate=120, markets=12, log=log) as sandbox,
        World(sandbox, database_url, log) as world,
    ):
        exchange = world.exchange()
        environment = {
            "PRESAGE_PIPELINE_DATABASE_URL": login_url(database_url, PIPELINE),
            "PRESAGE_GAMMA_URL": exchange.gamma_url,
            "PRESAGE_CLOB_URL": exchange.clob_url,
            "PRESAGE_CLOB_SOCKET_URL": exchange.socket_url,
            "PRESAGE_DATA_API_URL": exchange.data_api_url,
            "PRESAGE_SOURCE": exchange.source,
            "PRESAGE_CHAIN_RPC_URLS": "",
        }
        first = hosts("a", "feed", **environment)
        until(lambda: held(world.conn) == {("polymarket", "a"): "leader"})
        hosts("b", "feed", **environment)
        until(lambda: held(world.conn) == {("polymarket", "a"): "leader", ("polymarket", "b"): "standby"})
        began = now_ms()
        world.wait_until_sent(began, more_than=MIN_COMPARED)
        first.kill()
        until(lambda: held(world.conn) == {("polymarket", "b"): "leader"})
        world.wait_until_sent(began, more_than=2 * MIN_COMPARED)
        again = hosts("a", "feed", **environment)
        until(lambda: held(world.conn) == {("polymarket", "a"): "standby", ("polymarket", "b"): "leader"})

        world.conn.execute("insert into settings (name, value) values ('live_shards', '2')")
        halves = [(f"polymarket/{half}of2", host) for half in (1, 2) for host in "ab"]
        until(lambda: sorted(held(world.conn)) == halves)
        until(lambda: again.running() == {"live-1of2": "up", "live-2of2": "up"})
        world.wait_until_sent(began, more_than=3 * MIN_COMPARED)
        ended = world.shards_caught_up(2)

        assert world.differences(began, ended) == NO_DIFFERENCES
        assert {closed for *_, closed, _ in world.gaps()} <= {True}
        again.stop()
        until(lambda: world.conn.execute("select host from feed_hosts").fetchall() == [("b",)])


RUNS = """
    select count(*) filter (where host.value = %s and host.value is not null),
        count(*) filter (where host.value is null)
    from runs left join run_tags host on host.run_id = runs.run_id and host.key = 'presage/host'
    where runs.status = 'SUCCESS'
"""


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_runs_are_executed_by_another_host_and_by_dagsters_own_once_that_is_gone(
    cluster, database_url, hosts, monkeypatch
):
    disable_listings(monkeypatch)
    beside = cluster.url(DAGSTER)
    with ExitStack() as stack, Sandbox(simulate=5, rate=20, markets=12) as exchange:
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as admin:
            drop = f"drop database if exists {DAGSTER} with (force)"
            admin.execute(drop)
        environment = {
            "PRESAGE_PIPELINE_DATABASE_URL": login_url(database_url, PIPELINE),
            "PRESAGE_GAMMA_URL": exchange.gamma_url,
            "PRESAGE_CLOB_URL": exchange.clob_url,
            "PRESAGE_CLOB_SOCKET_URL": exchange.socket_url,
            "PRESAGE_DATA_API_URL": exchange.data_api_url,
            "PRESAGE_SOURCE": "simulated",
            "PRESAGE_CHAIN_RPC_URLS": "",
        }
        dagster = hosts("d", "dagster", **environment, DATABASE_URL=database_url, PRESAGE_DAGSTER_PORT=str(free_port()))
        until(lambda: dagster.running().get("daemon") == "up")
        runs = hosts("r", "runs", **environment)
        until(lambda: runs.running() == {"runs": "up"})
        conn = stack.enter_context(psycopg.connect(beside, autocommit=True))

        def ended():
            return conn.execute(RUNS, ["r"]).fetchone()

        until(lambda: ended()[0] > 0)
        runs.stop()
        before = ended()
        until(lambda: ended()[1] > before[1])

        assert ended()[0] == before[0]
        conn.close()
        dagster.stop()
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as admin:
            admin.execute(drop)


@pytest.mark.timeout(600)
def test_an_api_host_knows_its_own_login_alone_and_waits_for_the_schema(new_database, tmp_path, hosts):
    port = free_port()
    with new_database() as url:
        migrate.downgrade(url, "-1")
        host = hosts("c", "api", PRESAGE_API_DATABASE_URL=login_url(url, API), PRESAGE_API_PORT=str(port))
        until(lambda: "waiting for the database: it lacks migrations" in host.log.read_text())
        assert host.running() == {}
        migrate.upgrade(url)
        until(lambda: host.running() == {"api": "up"})

        answer = httpx.get(f"http://127.0.0.1:{port}/health")
        host.stop()

    assert answer.status_code == 200
    assert "api=up" in host.log.read_text()


@pytest.mark.parametrize(
    ("roles", "given", "said"),
    [
        (("dagster",), {}, "role dagster needs a database of another host: set DATABASE_URL$"),
        (("feed",), {}, "role feed .* set DATABASE_URL or PRESAGE_PIPELINE_DATABASE_URL$"),
        (("runs",), {}, "role runs .* set DATABASE_URL or PRESAGE_PIPELINE_DATABASE_URL$"),
        (("api",), {"PRESAGE_SITE_DATABASE_URL": URL}, "role api .* set DATABASE_URL or PRESAGE_API_DATABASE_URL$"),
        (("database", "feed"), {"DATABASE_URL": URL}, "the role database is the embedded one, and DATABASE_URL names"),
        (("site",), {"DATABASE_URL": URL}, "set PRESAGE_SITE_TOKEN to the same on both, and PRESAGE_API_URL"),
    ],
)
def test_what_a_role_lacks_is_named(monkeypatch, roles, given, said):
    for name in ("DATABASE_URL", "PRESAGE_SITE_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("config.settings.get", lambda: Settings(_env_file=None))

    with pytest.raises(typer.BadParameter, match=said):
        plan(live=True, roles=roles, from_settings=True)


def test_the_ports_of_other_roles_may_be_taken(monkeypatch):
    monkeypatch.setattr("config.settings.get", lambda: Settings(_env_file=None, database_url=URL, api_port=free_port()))
    monkeypatch.setattr("cli.stack.ports.free", lambda _: False)

    made = plan(live=True, roles=("feed",), from_settings=True)

    assert made.urls() == dict.fromkeys(("api", "stream", "dagster", "site"))
    with pytest.raises(typer.BadParameter, match=r"\(for the api\); see PRESAGE_API_PORT"):
        plan(live=True, roles=("api", "feed"), from_settings=True)


@pytest.mark.parametrize(
    ("roles", "database_url", "waits"),
    [(["database", "api"], None, False), (["dagster"], URL, True), (ONE_MACHINE, URL, False)],
)
def test_only_a_host_whose_database_is_elsewhere_waits_for_a_primary(tmp_path, roles, database_url, waits):
    made: list[str] = []
    of = Plan(source="exchange", ports=Ports.of(8080), data_dir=tmp_path, roles=roles, database_url=database_url)
    stack = Stack(of, Supervisor(made.append), made.append)
    stack.database = SimpleNamespace(
        open=lambda *_, **__: made.append("opened"),
        create_tables=lambda: made.append("tables"),
        with_primary=lambda act: (made.append("waited"), act()),
    )

    stack._prepare_tables()

    assert made == [*(["waited"] if waits else []), "opened", "tables"]


def test_unknown_roles_are_refused():
    refused = subprocess.run(
        [sys.executable, "-m", "cli.main", "up", "--role", "feed,oracle"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert refused.returncode == 2
    assert "unknown: oracle; allowed: database, dagster, runs, feed, api, site" in refused.stderr


class Looks:
    """A feed host whose looks and changes happen when the test says, and whose runs only sleep."""

    def __init__(self, folder, url, supervisor, name="a", **given):
        self.said = []
        self.supervisor = supervisor
        self.host = FeedHost(
            Settings(_env_file=None, host_name=name, **given),
            url,
            supervisor,
            environment={},
            logs=folder,
            directory=folder,
            say=self.said.append,
        )
        self.conn = None

    def look(self, url=None):
        self.host._url = url or self.host._url
        self.conn = self.host._look(self.conn)

    def act(self):
        self.host.apply()
        self.supervisor.watch()

    def pids(self):
        return {name: entry.service.pid for name, entry in self.supervisor.watched.items()}


@pytest.fixture
def looks(database_url, tmp_path, monkeypatch):
    """Make feed hosts; all are on one machine, and each has programs of its own."""
    monkeypatch.setattr("orchestration.feeds.hosts.STARTED_AFTER_S", 0.0)
    monkeypatch.setattr("cli.stack.feed_host.command", lambda _: [sys.executable, "-c", "import time; time.sleep(600)"])
    with ExitStack() as stack:

        def make(name="a", **given):
            made = Looks(tmp_path, database_url, stack.enter_context(Supervisor(lambda _: None)), name, **given)
            stack.callback(lambda: made.conn and made.conn.close())
            return made

        yield make


@pytest.mark.parametrize("lost", ["the database", "a right", "a table"])
def test_a_host_that_cannot_look_leaves_its_feeds_as_they_are_and_says_so_once(looks, database_url, lost):
    host = looks()
    host.look()
    host.act()
    before = host.pids()
    with psycopg.connect(database_url, autocommit=True) as conn:
        if lost == "a table":
            conn.execute("alter table feed_hosts rename to elsewhere")
        url = login_url(database_url, SITE) if lost == "a right" else None
        url = "postgresql:///nothing?host=/nowhere" if lost == "the database" else url
        if url is not None:
            host.conn.close()
        for _ in range(3):
            host.look(url)
            host.act()
        blind = host.pids()
        if lost == "a table":
            conn.execute("alter table elsewhere rename to feed_hosts")
        host.look(database_url)

    assert set(before) == {"live"}
    assert blind == before
    went_on, again = host.said
    assert went_on.startswith("feed host: runs go on as they are: ")
    assert again == "feed host: the database answers again"


def test_what_was_seen_of_a_run_that_has_ended_since_is_not_done(looks, conn):
    host = looks()
    host.look()
    host.act()
    conn.execute("insert into settings (name, value) values ('live_shards', '2')")
    conn.commit()
    host.look()  # the one run is to be released
    os.kill(host.pids()["live"], signal.SIGKILL)
    host.supervisor.release("live", terminate=False)
    until(lambda: (host.supervisor.watch(), "live" not in host.pids())[1])

    host.act()

    assert set(host.pids()) == {"live-1of2", "live-2of2"}


def test_a_run_that_never_shows_itself_is_killed_and_started_again_as_another(looks, monkeypatch):
    monkeypatch.setattr("orchestration.feeds.hosts.START_S", 0.0)
    monkeypatch.setattr("orchestration.feeds.hosts.HUNG_S", 0.0)
    host = looks()
    host.look()
    host.act()
    pid, run_id = host.pids()["live"], host.host._runs["polymarket"].run_id
    host.look()
    host.look()
    host.host.apply()

    until(lambda: (host.act(), host.pids()["live"] != pid)[1])
    assert host.host._runs["polymarket"].run_id != run_id
    assert "no sign of life" in host.said[0]


def test_a_program_that_cannot_be_started_does_not_end_the_host(looks, monkeypatch):
    host = looks()
    start, faults = FeedRun.start, [OSError("No space left on device")]

    def full(run):
        if faults:
            raise faults.pop()
        start(run)

    monkeypatch.setattr(FeedRun, "start", full)
    host.look()
    host.act()

    until(lambda: (host.act(), host.pids().get("live"))[1])
    assert faults == []


def test_two_hosts_of_one_name_are_told_so(looks):
    one, other = looks("twin"), looks("twin")

    one.look()
    assert one.said == []
    other.look()
    one.look()
    other.look()

    for host in (one, other):
        assert host.said == ["feed host: another host is called twin, too: set PRESAGE_HOST_NAME on one of them"]


def test_a_feed_host_refuses_a_database_with_data_of_another_source(conn, add_market, database_url, hosts):
    add_market("rain-tomorrow", source="simulated")
    conn.commit()

    host = hosts("d", "feed", PRESAGE_PIPELINE_DATABASE_URL=login_url(database_url, PIPELINE))
    host.process.wait(PATIENCE_S)

    assert "data of another source (simulated)" in host.log.read_text()
