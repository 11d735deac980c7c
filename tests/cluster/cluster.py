"""Three hosts as network namespaces, everything that runs on them, and their losses."""

from __future__ import annotations

import base64
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

import httpx
import psycopg

from sql import migrate
from sql.roles import logins
from sql.roles.rights import API, PIPELINE, SITE
from tests import namespaces
from tests.cluster import load
from tests.cluster.host import Host
from tests.cluster.patroni import Database, bare_environment, database_url, proxy
from tests.debian_programs import cluster_program
from tests.patience import until
from tests.roles import login_url
from upstream.sandbox.server import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack
    from pathlib import Path

PARTITION = "partition"
KINDS = ("database", "api", "feed", "dagster", PARTITION)
ROLES = ("feed,api,runs", "dagster,feed,api,runs", "dagster,feed,api,site")
API_PORT, ENTRY_PORT = 8080, 8000
STARTED_S, RECOVERED_S, CALM_S = 600.0, 600.0, 5.0
LEASES = """
    select feed, host, role, case when ready then coalesce((detail ->> 'ready_for_s')::float, 0) end
    from feed_leases where role <> 'gone' and beat_at > now() - interval '5 s' order by feed, role, host
"""
WHOLE_S = 5.0
"""A standby that has had every book for so long can take over without a gap: what the leader was last known to have
committed is a second old or two, and the standby counts two more as not committed."""
DAGSTER = "dagster"
DAEMON = """
    select coalesce(max(extract(epoch from timestamp) * 1000), 0) from daemon_heartbeats where daemon_type = 'SENSOR'
"""
HOST_OF_DAEMON = """
    select host(client_addr) from pg_stat_activity a where application_name = 'presage daemon'
        and exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'advisory' and l.granted)
"""
COMMITTED = "select detail ->> 'written_ms' from stage_clocks where stage = 'ingestion'"
ENTRY = """\
defaults
  mode http
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  retries 3
  option redispatch

frontend api
  bind {address}:{port}
  default_backend hosts

backend hosts
  option httpchk GET /health
  default-server check inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
{servers}"""


class Loss(NamedTuple):
    """A loss, and what its users noticed."""

    kind: str  # for which the host was chosen
    host: str
    losses: tuple[str, ...]  # the kinds of losses that it is
    feed_runs: tuple[str, ...]  # before it
    away_s: float
    without_writes_s: float
    without_reads_s: float
    recovered_s: float  # after it was back
    failed_writes: dict[str, int]  # how often, by what was said
    failed_reads: dict[str, int]


class Cluster:
    """Three hosts, and everything on them."""

    def __init__(self, stack: ExitStack, folder: Path, *, rate: int, markets: int) -> None:
        self.folder = folder
        networks = stack.enter_context(namespaces.hosts("h1", "h2", "h3"))
        self.entry = f"{namespaces.SUBNET}.254"
        self.log = folder / "truth.jsonl"
        self.sandbox = stack.enter_context(
            Sandbox(simulate=5, rate=rate, markets=markets, host=self.entry, log=self.log)
        )
        environment = bare_environment()
        self.hosts = [
            Host(network.name.rpartition("-")[2], folder, environment, address=network.address, network=network)
            for network in networks
        ]
        for host in self.hosts:
            stack.callback(host.lose)
        self.database = Database(self.hosts, folder)
        self._proxies = Host("entry", folder, environment, address=self.entry)
        stack.callback(self._proxies.lose)
        for host in (*self.hosts, self._proxies):
            at = self.entry if host is self._proxies else "127.0.0.1"
            host.add("haproxy", proxy(host.folder, at, self.hosts))
        self._proxies.add("api", self._entry())
        self.url = database_url(self.entry)

    def _entry(self) -> tuple[list[str | Path], dict[str, str]]:
        servers = "".join(f"  server {host.name} {host.address}:{API_PORT}\n" for host in self.hosts)
        file = self.folder / "entry.cfg"
        file.write_text(ENTRY.format(address=self.entry, port=ENTRY_PORT, servers=servers))
        return [*cluster_program("haproxy"), "-db", "-f", file], {}

    def start(self, say: Callable[[str], None]) -> None:
        """Start everything, and wait until each part of it is there."""
        for host in self.hosts:
            host.start("etcd", "patroni", "haproxy")
        self._proxies.start()
        until(self.database.whole, within_s=STARTED_S)
        say("database: a primary and two replicas")
        until(lambda: _answers(database_url(self.entry, "postgres")))
        with psycopg.connect(database_url(self.entry, "postgres"), autocommit=True) as conn:
            conn.execute("create database presage")
        migrate.upgrade(self.url)
        urls = {role: login_url(self.url, role) for role in (PIPELINE, API, SITE)}
        with psycopg.connect(self.url, autocommit=True) as conn:
            logins.ensure(conn, urls)
            conn.execute(load.TABLE)
        for number, host in enumerate(self.hosts):
            host.add("presage", self._presage(host, ROLES[number]))
            host.start("presage")
        until(lambda: self.recovered(lost_ms=1, back_ms=1), within_s=STARTED_S)
        say("presage: API, feeds and standbys on three hosts")

    def _presage(self, host: Host, roles: str) -> tuple[list[str | Path], dict[str, str]]:
        local = database_url("127.0.0.1")
        given = {
            "PRESAGE_HOST_NAME": host.name,
            "PRESAGE_DATA_DIR": str(host.folder / "presage"),
            "PRESAGE_PIPELINE_DATABASE_URL": login_url(local, PIPELINE),
            "PRESAGE_API_DATABASE_URL": login_url(local, API),
            "DATABASE_READ_URL": login_url(database_url("127.0.0.1", port=5001), API),
            "PRESAGE_SITE_DATABASE_URL": login_url(local, SITE),
            "PRESAGE_API_HOST": "0.0.0.0",
            "PRESAGE_API_PORT": str(API_PORT),
            "PRESAGE_GAMMA_URL": self.sandbox.gamma_url,
            "PRESAGE_CLOB_URL": self.sandbox.clob_url,
            "PRESAGE_CLOB_SOCKET_URL": self.sandbox.socket_url,
            "PRESAGE_DATA_API_URL": self.sandbox.data_api_url,
            "PRESAGE_CHAIN_RPC_URLS": self.sandbox.rpc_url,
            "PRESAGE_SOURCE": self.sandbox.source.source,
            "PRESAGE_BACKFILL_DAYS": "0",
            "PRESAGE_WEBHOOK_ENCRYPTION_KEYS": base64.urlsafe_b64encode(bytes(32)).decode(),
        }
        if "dagster" in roles:
            given["DATABASE_URL"] = local
        return [sys.executable, "-m", "cli.main", "up", "--role", roles], given

    def recovered(self, lost_ms: int, back_ms: int) -> bool:
        """Return whether nothing is missing of a host that was lost and is back: three databases, three APIs, two runs
        of each feed, and a daemon that was heard of after the loss, as it is every half a minute.

        And what the exchange had sent when it was back is committed. RuntimeError: a program has ended by itself.
        """
        if ended := [f"{host.name}'s {name}" for host in self.hosts for name in host.ended()]:
            raise RuntimeError(f"{', '.join(ended)} ended by itself")
        return (
            self.database.whole()
            and all(map(_healthy, self.hosts))
            and self._feeds_are_doubled()
            and self._committed_ms() > back_ms
            and self._daemon_beat_ms() > lost_ms
        )

    def _feeds_are_doubled(self) -> bool:
        """Return whether each feed has one leader and a standby on another host that could take over without a gap.

        Dagster's own runs count: it starts some when it finds no feed host, as after a failover.
        """
        leases = self._leases()
        leaders = Counter(feed for feed, _, role, _ in leases if role == "leader")
        whole = {(feed, role, host) for feed, host, role, ready_for_s in leases if (ready_for_s or 0) >= WHOLE_S}
        leading = {feed: host for feed, role, host in whole if role == "leader"}
        doubled = {feed for feed, role, host in whole if role == "standby" and host != leading.get(feed, host)}
        return {"polymarket", "settlement"} <= doubled == leaders.keys() and set(leaders.values()) == {1}

    def _leases(self) -> list[tuple[Any, ...]]:
        return self._ask(LEASES)

    def feed_runs(self) -> tuple[str, ...]:
        """Return who runs the feeds now: feed, host, role, and since when (s) it has every book."""
        return tuple(" ".join(map(str, lease)) for lease in self._leases())

    def _daemon_beat_ms(self) -> int:
        """Return when the daemon of any host has last been heard of."""
        try:
            return int((self.ask_dagster(DAEMON) or [(0,)])[0][0])
        except psycopg.Error:
            return 0

    def ask_dagster(self, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        """Return what Dagster's own database answers."""
        with psycopg.connect(database_url(self.entry, DAGSTER), autocommit=True, connect_timeout=2) as conn:
            return conn.execute(query, values).fetchall()

    def _committed_ms(self) -> int:
        return next((int(written or 0) for (written,) in self._ask(COMMITTED)), 0)

    def _ask(self, query: LiteralString) -> list[tuple[Any, ...]]:
        """Return what the primary answers; nothing, if it does not."""
        try:
            with psycopg.connect(self.url, autocommit=True, connect_timeout=2) as conn:
                return conn.execute(query).fetchall()
        except psycopg.Error:
            return []

    def say_logs(self, say: Callable[[str], None]) -> None:
        """Say how each program's log ends."""
        for host in (*self.hosts, self._proxies):
            for log in sorted(host.folder.rglob("*.log")):
                say(f"--- {host.name}/{log.name}\n{log.read_text(errors='replace')[-1500:]}")

    def leading(self) -> dict[str, Host]:
        """Return which host has the primary, leads the feed and runs Dagster's daemon, by kind of loss."""
        primary = until(self.database.primary)
        daemons = {address for (address,) in until(lambda: self._ask(HOST_OF_DAEMON))}
        leader = until(
            lambda: next(
                (name for feed, name, role, _ in self._leases() if (feed, role) == ("polymarket", "leader")), None
            )
        )
        return {
            "database": primary,
            "feed": next(host for host in self.hosts if host.name == leader),
            "dagster": next(host for host in self.hosts if host.address in daemons),
        }

    def lose(self, kind: str, away_s: float, writer: load.Worker, reader: load.Worker) -> Loss:
        """Lose a host whose loss is one of this kind, bring it back, and return how long that was felt."""
        leading = self.leading()
        other = next(host for host in self.hosts if host is not leading["database"])
        host = leading.get("feed" if kind == PARTITION else kind, other)
        losses = ("api", *(each for each, its in leading.items() if its is host))  # all have the API
        feed_runs = self.feed_runs()
        began = time.monotonic()
        if kind == PARTITION:
            assert host.network is not None
            host.network.cut()
        else:
            host.lose()
        lost_ms = int(time.time() * 1000)
        time.sleep(away_s)
        if kind == PARTITION:
            host.network.heal()
        else:
            host.start()
        back_ms = int(time.time() * 1000)
        until(lambda: self.recovered(lost_ms, back_ms), within_s=RECOVERED_S)
        ended = time.monotonic()
        time.sleep(CALM_S)
        return Loss(
            kind,
            host.name,
            (PARTITION,) if kind == PARTITION else losses,
            feed_runs,
            away_s,
            writer.longest_pause_s(began, ended + CALM_S),
            reader.longest_pause_s(began, ended + CALM_S),
            ended - began - away_s,
            writer.failures(began, ended + CALM_S),
            reader.failures(began, ended + CALM_S),
        )


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=2) as conn:
            return conn.execute("select not pg_is_in_recovery()").fetchone() == (True,)
    except psycopg.Error:
        return False


def _healthy(host: Host) -> bool:
    try:
        return httpx.get(f"http://{host.address}:{API_PORT}/health", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False
