"""python -m tests.cluster [--losses N] [--only KIND…] [--json FILE]: three hosts, of which one after another is lost.

Each host is a network namespace with etcd, PostgreSQL by Patroni, HAProxy and `presage up --role feed,api`; two have
Dagster as well, one of these the site. A sandbox exchange plays into them; a writer, a client of the API and
subscribers of the stream use them through one proxy. A host is killed as a whole, or its cable is pulled; then it comes
back. In the end all that was acknowledged, sent or counted is compared with what the database and the clients have.
Needs root.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import signal
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

import httpx
import psycopg

from api.metering.meter import MAX_LEASE
from sql import migrate
from sql.roles import logins
from sql.roles.rights import API, PIPELINE, SITE
from tests import namespaces, stream_rows
from tests.api.conftest import generous
from tests.cluster import load
from tests.cluster.host import Host
from tests.cluster.patroni import Database, bare_environment, database_url, proxy
from tests.debian_programs import cluster_program
from tests.patience import until
from tests.roles import login_url
from tests.soak.audit import audit
from tests.soak.subscribers import Subscriber, Subscribers
from tests.soak.test_stream_faults import difference
from upstream.sandbox.server import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KINDS = ("database", "api", "feed", "dagster", "partition")
API_PORT, ENTRY_PORT = 8080, 8000
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
STARTED_S, RECOVERED_S, CUT_S, CALM_S = 600.0, 600.0, 40.0, 5.0
LEASES = "select feed, split_part(run_id, '-', 1), role, ready from feed_leases where beat_at > now() - interval '5 s'"
DAGSTER = "dagster"
DAEMON = """
    select coalesce(max(extract(epoch from timestamp) * 1000), 0) from daemon_heartbeats where daemon_type = 'SENSOR'
"""
HOST_OF_DAEMON = """
    select host(client_addr) from pg_stat_activity a where application_name = 'presage daemon'
        and exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'advisory' and l.granted)
"""
COMMITTED = "select detail ->> 'written_ms' from stage_clocks where stage = 'ingestion'"
CREDITS = """
    with keys as (select key_id from api_keys join accounts using (account_id) where email = %(email)s)
    select (select coalesce(sum(used), 0) from credit_usage join keys using (key_id)),
        (select count(*) from credit_leases join keys using (key_id))
"""
READER = "cluster@example.com"
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

    kind: str
    host: str
    without_writes_s: float
    without_reads_s: float
    recovered_s: float


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
            host.add("presage", self._presage(host, ("feed,api", "dagster,feed,api", "dagster,feed,api,site")[number]))
            host.start("presage")
        until(lambda: self.recovered(since_ms=1), within_s=STARTED_S)
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

    def recovered(self, since_ms: int) -> bool:
        """Return whether nothing is missing: three databases, three APIs, two runs of each feed, a daemon.

        And what the exchange has sent until a moment is committed.
        """
        return (
            self.database.whole()
            and all(map(_healthy, self.hosts))
            and self._feeds_are_doubled()
            and self._committed_ms() > since_ms
            and self._daemon_beat_ms() > since_ms
        )

    def _feeds_are_doubled(self) -> bool:
        """Return whether each feed has one leader and a standby, all of them ready.

        Dagster's own runs count: it starts some when it finds no feed host, as after a failover.
        """
        runs: dict[str, list[str]] = {}
        for feed, _, role, ready in self._leases():
            if ready:
                runs.setdefault(feed, []).append(role)
        return {"polymarket", "settlement"} <= runs.keys() and all(
            of.count("leader") == 1 and len(of) > 1 for of in runs.values()
        )

    def _leases(self) -> list[tuple[Any, ...]]:
        return self._ask(LEASES)

    def _daemon_beat_ms(self) -> int:
        """Return when the daemon of any host has last been heard of."""
        try:
            with psycopg.connect(database_url(self.entry, DAGSTER), autocommit=True, connect_timeout=2) as conn:
                return int((conn.execute(DAEMON).fetchone() or (0,))[0])
        except psycopg.Error:
            return 0

    def dagster(self) -> Host:
        """Return the host whose daemon runs."""
        addresses = {address for (address,) in until(lambda: self._ask(HOST_OF_DAEMON))}
        return next(host for host in self.hosts if host.address in addresses)

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

    def victim(self, kind: str) -> Host:
        """Return the host whose loss is one of this kind."""
        primary = until(self.database.primary)
        if kind == "database":
            return primary
        if kind == "dagster":
            return self.dagster()
        if kind == "api":
            return next(host for host in self.hosts if host is not primary)
        leader = until(
            lambda: next(
                (name for feed, name, role, _ in self._leases() if (feed, role) == ("polymarket", "leader")), None
            )
        )
        return next((host for host in self.hosts if host.name == leader), primary)  # else Dagster's run leads

    def lose(self, kind: str, writer: load.Worker, reader: load.Worker) -> Loss:
        """Lose a host, bring it back, and return how long that was felt."""
        host, began = self.victim(kind), time.monotonic()
        if kind == "partition":
            assert host.network is not None
            host.network.cut()
            time.sleep(CUT_S)
            host.network.heal()
        else:
            host.lose()
            time.sleep(CUT_S / 2)  # the others have taken over before it comes back
            host.start()
        back_ms = int(time.time() * 1000)
        until(lambda: self.recovered(back_ms), within_s=RECOVERED_S)
        ended = time.monotonic()
        time.sleep(CALM_S)
        return Loss(
            kind,
            host.name,
            writer.longest_pause_s(began, ended + CALM_S),
            reader.longest_pause_s(began, ended + CALM_S),
            ended - began,
        )


def _end(*_: object) -> None:
    """End, and take everything down in peace."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    sys.exit(1)


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


def deviations(
    cluster: Cluster, writer: load.Writer, reader: load.Reader, streams: Subscribers
) -> tuple[list[str], dict[str, Any]]:
    """Compare what was acknowledged, received and counted with what is there; return deviations and figures."""
    found: list[str] = []
    with psycopg.connect(cluster.url, autocommit=True) as conn:
        numbers = {number for (number,) in conn.execute("select number from cluster_numbers")}
        if lost := set(range(1, writer.acknowledged + 1)) - numbers:
            found.append(f"{len(lost)} acknowledged writes lost: {sorted(lost)[:5]}")
        events = stream_rows.rows(conn)
        sent = [
            json.loads(row.message)["data"]["number"]
            for row in events
            if row.type == "signal" and '"number"' in row.message
        ]
        if sorted(sent) != sorted(numbers):
            found.append(f"{len(sent)} events of {len(numbers)} numbers, {len(sent) - len(set(sent))} doubled")
        expected = [row.seq for row in events if row.wallet is None]  # more is published meanwhile
        until(lambda: streams.failed or all(each.last >= expected[-1] for each in streams.subscribers))
        if streams.failed:
            found.append(f"a subscriber ended: {streams.failed!r}")
        for number, each in enumerate(streams.subscribers, start=1):
            received = [seq for seq in list(each.received) if seq <= expected[-1]]
            wanted = [seq for seq in expected if seq >= received[0]]
            if received != wanted or each.gaps:
                found.append(f"subscriber {number}: {difference(received, wanted)}, gaps {each.gaps}")
        used, leases = conn.execute(CREDITS, {"email": READER}).fetchone() or (0, 0)
    report = audit(cluster.url, cluster.log)
    try:
        report.assert_clean()
    except AssertionError as failed:
        found.append(str(failed))
    if report.missing:
        found.append(f"in gaps that are not filled: {report.missing}")
    if not reader.paid <= used <= reader.paid + reader.unknown * reader.dearest + leases * MAX_LEASE:
        found.append(f"{used} credits charged, {leases} leases, for {reader.paid} paid and {reader.unknown} failures")
    found += [f"{worker!r}: {worker.fault!r}" for worker in (writer, reader) if worker.fault]
    return found, {
        "acknowledged writes": writer.acknowledged,
        "stream events": len(events),
        "events received": sum(len(each.received) for each in streams.subscribers),
        "reconnections": sum(each.connections - 1 for each in streams.subscribers),
        "answers": reader.answered,
        "credits paid for them": reader.paid,
        "requests without an answer": reader.unknown,
        "credits charged, what hosts hold included": int(used),
        "leases that hosts hold or lost": int(leases),
        "feed": str(report),
    }


def main() -> int:
    """Build the hosts, lose them in turns, audit, and take everything down; 1 if anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__.partition("\n")[0])
    parser.add_argument("--losses", type=int, default=1, metavar="N", help="of each kind (1)")
    parser.add_argument("--only", action="append", choices=KINDS, metavar="KIND", help=f"of: {', '.join(KINDS)} (all)")
    parser.add_argument("--rate", type=int, default=60, help="events a second of the exchange (60)")
    parser.add_argument("--markets", type=int, default=20, help="of the exchange (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the order of losses (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every loss and the figures")
    given = parser.parse_args()
    for number in ENDING:
        signal.signal(number, _end)
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {line}", flush=True)

    order = [kind for kind in given.only or KINDS for _ in range(given.losses)]
    random.Random(given.seed).shuffle(order)
    losses, found, figures = lose_all(order, given.rate, given.markets, say)
    for name, figure in figures.items():
        say(f"{name}: {figure:,}" if isinstance(figure, int) else f"{name}: {figure}")
    for what in ("without_writes_s", "without_reads_s", "recovered_s"):
        for kind in dict.fromkeys(order):
            of = sorted(getattr(loss, what) for loss in losses if loss.kind == kind)
            p99 = of[min(len(of) - 1, len(of) * 99 // 100)]
            say(f"{what} {kind}: p50 {statistics.median(of):.1f}, p99 {p99:.1f}, most {of[-1]:.1f} ({len(of)} losses)")
    if given.json:
        given.json.write_text(json.dumps({"losses": [loss._asdict() for loss in losses], **figures, "faults": found}))
    for fault in found:
        say(f"FAULT {fault}")
    return 1 if found else 0


def lose_all(
    order: Sequence[str], rate: int, markets: int, say: Callable[[str], None]
) -> tuple[list[Loss], list[str], dict[str, Any]]:
    """Run a cluster under load, lose hosts in this order; return the losses, deviations and figures."""
    losses: list[Loss] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="presage-cluster-")))
        folder.chmod(0o755)
        cluster = Cluster(stack, folder, rate=rate, markets=markets)
        stack.push(lambda kind, *_: cluster.say_logs(say) if kind not in {None, SystemExit} else None)
        cluster.start(say)
        with psycopg.connect(cluster.url, autocommit=True) as conn:
            key = generous(conn, READER, max_connections=100, credits_month=10**12)
            stream_key = generous(conn, "stream@example.com", max_connections=100, credits_month=10**12)
        entry = f"http://{cluster.entry}:{ENTRY_PORT}"
        writer, reader = load.Writer(cluster.url, 0.02), load.Reader(entry, key, 0.05)
        listeners = [Subscriber(stream_key, frozenset(), None, None, frozenset()) for _ in range(3)]
        streams = Subscribers(entry, listeners, 1)
        streams.reconnecting = False
        for thread in (writer, reader, streams):
            thread.start()
            stack.callback(thread.stop)
        until(lambda: writer.acknowledged and reader.answered and all(each.received for each in listeners))
        for number, kind in enumerate(order, start=1):
            last = cluster.lose(kind, writer, reader)
            losses.append(last)
            say(
                f"{number}/{len(order)} {last.kind} ({last.host}): {last.without_writes_s:.1f} s without writes,"
                f" {last.without_reads_s:.1f} s without reads, whole after {last.recovered_s:.0f} s"
            )
        writer.stop()
        reader.stop()
        return losses, *deviations(cluster, writer, reader, streams)


if __name__ == "__main__":
    sys.exit(main())
