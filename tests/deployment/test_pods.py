"""What the Helm chart's pods run, without a cluster: a shard's pods, and the migration of CloudNativePG's database."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from sql.embedded.cluster import Cluster
from sql.roles.rights import API, PIPELINE, SITE
from tests.deployment.helm import CHART, ROOT, resources
from tests.orchestration.ingest.live_world import World, wait_until
from tests.roles import login_url
from upstream.sandbox.server import Sandbox

PATIENCE_S = 300.0  # each probe is a start of Python


def container(values, kind, name):
    (found,) = [
        each["spec"]["template"]["spec"]["containers"][0]
        for each in resources("--values", str(CHART / f"ci/{values}.yaml"))
        if each["kind"] == kind and each["metadata"]["name"].startswith(name)
    ]
    return found


class Pod:
    """A container's command and its probes, under the host name of its pod."""

    def __init__(self, world, name):
        exchange = world.exchange()
        self.name, self.container = name, container("minimal", "StatefulSet", "presage-live-1of1")
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "DATABASE_URL": login_url(world.url, PIPELINE),
            "PRESAGE_GAMMA_URL": exchange.gamma_url,
            "PRESAGE_CLOB_URL": exchange.clob_url,
            "PRESAGE_CLOB_SOCKET_URL": exchange.socket_url,
            "PRESAGE_DATA_API_URL": exchange.data_api_url,
            "PRESAGE_SOURCE": exchange.source,
        }
        self.start()

    def command(self, words):
        namespace = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--uts"]
        return [*namespace, "sh", "-c", 'hostname "$0" && exec "$@"', self.name, *words]

    def start(self):
        self.process = subprocess.Popen(
            self.command(self.container["command"]), cwd=ROOT, env=self.environment, stdout=subprocess.DEVNULL
        )

    def probe(self, kind):
        command = self.command(self.container[f"{kind}Probe"]["exec"]["command"])
        return subprocess.run(command, cwd=ROOT, env=self.environment, check=False, capture_output=True).returncode == 0

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def pods(database_url, tmp_path):
    log = tmp_path / "truth.jsonl"
    with Sandbox(simulate=3, rate=50, markets=15, log=log) as sandbox, World(sandbox, database_url, log) as world:
        pair = [Pod(world, f"presage-live-1of1-{number}") for number in (0, 1)]
        try:
            yield world, pair
        finally:
            for pod in pair:
                pod.end()


def leads(world, pod):
    return world.conn.execute(
        "select exists (select from feed_leases where host = %s and role = 'leader' and ready"
        " and beat_at > now() - interval '3 s')",
        [pod.name],
    ).fetchone() == (True,)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_pod_that_dies_or_hangs_hands_the_lead_over_and_is_ready_again_once_it_is_replaced(pods):
    world, pair = pods
    for end in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
        wait_until(lambda: all(pod.probe("readiness") and pod.probe("liveness") for pod in pair), PATIENCE_S)
        leader = wait_until(lambda: next((pod for pod in pair if leads(world, pod)), None), PATIENCE_S)
        (standby,) = (pod for pod in pair if pod is not leader)

        leader.process.send_signal(end)

        wait_until(lambda leader=leader: not leader.probe("liveness"), PATIENCE_S)
        wait_until(lambda standby=standby: standby.probe("liveness"), PATIENCE_S)
        if end == signal.SIGSTOP:
            assert not leads(world, standby), "the lock is its process's, until the probe has it ended"
            leader.end()
        wait_until(lambda standby=standby: leads(world, standby), PATIENCE_S)
        leader.process.wait(PATIENCE_S)
        leader.start()


@pytest.mark.soak
@pytest.mark.license("apache")
def test_the_migration_runs_as_the_owner_that_cloudnativepg_makes():
    (database,) = [
        each["spec"] for each in resources("--values", str(CHART / "ci/monitoring.yaml")) if each["kind"] == "Cluster"
    ]
    start, owner = database["bootstrap"]["initdb"], "of_the_tables"  # the embedded server's own user has the other name
    job = container("monitoring", "Job", "presage-migrate")
    with tempfile.TemporaryDirectory(prefix="presage-") as folder:
        Path(folder).chmod(0o755)
        with Cluster(Path(folder) / "database") as server:
            with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
                admin.execute(f"create role {owner} login")
                for query in start["postInitSQL"]:
                    admin.execute(query.replace(start["owner"], owner))
                admin.execute(f"create database of_ours owner {owner}")
            with psycopg.connect(server.url("of_ours"), autocommit=True) as admin:
                for query in start["postInitApplicationSQL"]:
                    admin.execute(query)
            at = conninfo_to_dict(server.url("of_ours"))

            def url(user):
                return f"postgresql://{user}:not-a-secret@/of_ours?host={at['host']}&port={at['port']}"

            logins = {role: url(f"{role}_login") for role in (PIPELINE, API, SITE)}
            given = {f"{role.upper()}_DATABASE_URL": login for role, login in logins.items()}
            path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

            done = subprocess.run(
                job["command"],
                cwd=ROOT,
                env={**os.environ, "PATH": path, "DATABASE_URL": url(owner), **given},
                capture_output=True,
                text=True,
                check=False,
            )

            assert done.returncode == 0, done.stderr
            assert "the database's roles are not as they should be" not in done.stderr
            for login in logins.values():
                with psycopg.connect(login) as conn:
                    assert conn.execute("select count(*) from alembic_version").fetchone() == (1,)
            with psycopg.connect(logins[PIPELINE].replace("/of_ours?", "/dagster?")) as conn:
                assert conn.execute("select has_schema_privilege('public', 'create')").fetchone() == (True,)
