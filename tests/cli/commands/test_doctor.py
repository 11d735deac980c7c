"""Findings of `presage doctor` and their remedies."""

from __future__ import annotations

import http.server
import shutil
import socket
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer
from pydantic import SecretStr
from typer.testing import CliRunner

from cli.commands.doctor import diagnose, doctor, table
from cli.diagnosis import Finding, database, host, pipeline
from config import settings as configuration
from config.settings import Settings
from sql.database import connect
from sql.embedded import Cluster, installation
from sql.roles import grants
from tests.databases import new_database, start_jobs
from tests.factories import insert
from tests.ports import free_port


@pytest.fixture
def folder():
    """A folder that the unprivileged user can access (pytest's own are readable by root only)."""
    with tempfile.TemporaryDirectory(prefix="presage-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture
def settings(folder):
    """Settings of a machine on which none of our services run."""

    def made(**given):
        free = {"api_port": free_port(), "dagster_port": free_port()}
        return Settings(_env_file=None, **{"database_url": None, "data_dir": folder, **free, **given})

    return made


@pytest.fixture
def web():
    """A web server that answers 200 to everything, and the requested paths."""
    asked = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.server_port, asked
        server.shutdown()
        thread.join()


class Rows:
    """A connection to the Community edition, as far as the checks use one."""

    def __init__(self, community):
        self.community = community

    def execute(self, question):
        self.rows = self.community.execute(question)
        return self

    def fetchone(self):
        return self.rows[0] if self.rows else None

    def fetchall(self):
        return self.rows


def of(findings: list[Finding], topic: str) -> Finding:
    (found,) = [finding for finding in findings if finding.topic == topic]
    return found


def test_a_migrated_database_is_well(settings, conn, database_url):
    start_jobs(conn)

    findings = diagnose(settings(database_url=SecretStr(database_url)))

    assert [finding for finding in findings if finding.status == "fail"] == []
    assert of(findings, "server").found.startswith("PostgreSQL ")
    assert of(findings, "timescaledb").status == "ok"
    assert of(findings, "schema").found.endswith("the newest")
    assert of(findings, "clock").status == "ok"


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(
            "apache (hypertables only): continuous aggregates no, columnstore no, policies no; candles by triggers",
            marks=pytest.mark.license("apache"),
        ),
        pytest.param(
            "timescale (Community): continuous aggregates yes, columnstore yes, policies yes;"
            " candles by continuous aggregates",
            marks=pytest.mark.license("timescale"),
        ),
    ],
)
def test_the_licence_and_what_it_allows_are_told(settings, database_url, told):
    assert of(diagnose(settings(database_url=SecretStr(database_url))), "licence").found == told


def test_the_community_edition_is_told_and_its_jobs_looked_at(community):
    found = database.features(Rows(community))

    assert found.status == "ok"
    assert found.found == (
        "timescale (Community): continuous aggregates yes, columnstore yes, policies yes; "
        "candles by continuous aggregates"
    )
    (jobs,) = database.jobs(Rows(community))
    assert (jobs.status, jobs.topic) == ("fail", "jobs")
    assert "max_background_workers" in jobs.remedy  # this server has none
    assert database.timescaledb(Rows(community)).status == "ok"


def test_candles_made_under_another_licence_are_a_failure(community):
    community.execute("drop materialized view candles_1m cascade; create table candles_1m (n int)")

    assert database.features(Rows(community)).status == "fail"


def test_an_empty_database_is_to_be_migrated(settings, cluster):
    with new_database(cluster) as url:
        findings = diagnose(settings(database_url=SecretStr(url)))

    for topic in ("timescaledb", "licence", "schema"):
        assert (of(findings, topic).status, of(findings, topic).remedy) == ("warn", "run `presage migrate`")


def test_a_schema_of_a_newer_release_is_a_failure(conn, database_url, settings):
    conn.execute("update alembic_version set version_num = 'later'")

    found = of(diagnose(settings(database_url=SecretStr(database_url))), "schema")

    assert (found.status, found.remedy) == ("fail", "install the newer release")


def test_a_schema_of_an_older_release_is_a_failure(conn, database_url, settings, tmp_path, monkeypatch):
    shutil.copytree("alembic", tmp_path / "alembic")
    (tmp_path / "alembic/versions/9999_next.py").write_text(
        f'"""Next."""\nrevision, down_revision = "next", "{database.migration(conn).found.split()[1].rstrip(",")}"\n'
    )
    monkeypatch.setattr("sql.migrate.FOLDER", tmp_path / "alembic")

    found = of(diagnose(settings(database_url=SecretStr(database_url))), "schema")

    assert (found.status, found.remedy) == ("fail", "run `presage migrate`")


def test_a_database_that_cannot_be_reached_is_a_failure_that_tells_no_password(settings):
    findings = diagnose(settings(database_url=SecretStr("postgresql://me:s3cret@127.0.0.1:9/presage")))

    assert of(findings, "database").status == "fail"
    assert "check DATABASE_URL" in of(findings, "database").remedy
    assert "s3cret" not in str(findings)


def test_roles_with_other_grants_than_the_release_declares_are_told(conn, database_url, settings):
    def found():
        return of(diagnose(settings(database_url=SecretStr(database_url))), "roles")

    assert found().status == "ok"
    conn.execute("revoke select on markets from presage_api")
    assert (found().status, found().remedy) == ("warn", "run `presage migrate` as the tables' owner")
    assert "no select on markets to presage_api" in found().found
    conn.execute("grant select on markets, accounts to presage_api, presage_site")

    assert found().status == "fail"
    assert "also select on accounts to presage_site, also select on markets to presage_site" in found().found


def test_processes_with_the_owners_rights_are_told(database_url, settings):
    with connect(database_url):
        found = of(diagnose(settings(database_url=SecretStr(database_url))), "roles")

    assert (found.status, found.found) == ("warn", "1 connections of processes have the owner's rights")


def test_missing_roles_are_told_with_what_to_do(database_url, settings, monkeypatch):
    monkeypatch.setattr(grants, "ROLES", (*grants.ROLES, "presage_absent"))

    found = of(diagnose(settings(database_url=SecretStr(database_url))), "roles")

    assert (found.status, found.found) == ("warn", "missing: presage_absent")
    assert "create role presage_absent nologin" in found.remedy


def test_clocks_apart_are_a_failure(settings, database_url, monkeypatch):
    monkeypatch.setattr(database.time, "time", lambda: 1_000_000_000.0)

    found = of(diagnose(settings(database_url=SecretStr(database_url))), "clock")

    assert (found.status, found.remedy) == ("fail", "synchronise both with NTP: every lag is wrong otherwise")


def test_more_processes_than_connections_are_to_mind(settings, conn):
    found = database.connections(conn, settings(api_workers=50))

    assert found.status == "warn"
    assert "max_connections" in found.remedy


def test_hosts_that_run_feeds_are_named_and_a_single_one_is_to_mind(conn):
    assert list(pipeline.hosts(conn)) == []

    insert(conn, "feed_hosts", {"host": "a", "instance": "1"})
    ends = {"role": "leader", "window_ends_at": datetime.now(UTC), "host": "a"}
    insert(conn, "feed_leases", {"run_id": "1", "feed": "polymarket", **ends})
    insert(conn, "feed_leases", {"run_id": "2", "feed": "settlement", **ends, "role": "gone"})
    alone, lonely = pipeline.hosts(conn)
    insert(conn, "feed_hosts", {"host": "b", "instance": "2"})
    insert(conn, "feed_hosts", {"host": "c", "instance": "3", "beat_at": datetime.now(UTC) - timedelta(minutes=10)})
    found = list(pipeline.hosts(conn))

    assert (alone.status, alone.found) == ("ok", "a runs 1 feed")
    assert (lonely.status, lonely.found) == ("warn", "only one host runs feeds")
    assert [(each.status, each.found) for each in found] == [
        ("ok", "a runs 1 feed"),
        ("ok", "b runs 0 feeds"),
        ("warn", "c has been silent for 10 minutes"),
    ]


def test_one_look_that_goes_wrong_does_not_end_the_others(settings, database_url, monkeypatch):
    def server(_):
        raise ValueError("unheard of")

    monkeypatch.setattr(database, "server", server)

    findings = diagnose(settings(database_url=SecretStr(database_url)))

    assert (of(findings, "server").status, of(findings, "server").found) == ("fail", "unheard of")
    assert of(findings, "clock").status == "ok"


def test_an_embedded_database_that_does_not_run_is_started_to_be_looked_at(settings, folder):
    cluster = Cluster(folder / "database")
    with cluster:
        pass

    findings = diagnose(settings())

    assert "started for these checks" in of(findings, "database").found
    assert of(findings, "schema").remedy == "run `presage migrate`"
    assert cluster.pid is None
    cluster.erase()


def test_an_embedded_database_without_data_is_not_made(settings, folder):
    installation.install()

    found = of(diagnose(settings()), "database")

    assert (found.status, found.remedy) == ("warn", "`presage demo` creates it")
    assert list(folder.iterdir()) == []


def test_an_embedded_database_that_is_not_installed_is_not_installed(settings, tmp_path):
    found = of(diagnose(settings(cache_dir=tmp_path / "cache")), "database")

    assert (found.status, found.remedy) == ("warn", "`presage demo` installs it")
    assert not (tmp_path / "cache").exists()


def test_a_machine_that_cannot_have_an_embedded_database_is_told_why(settings, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    found = of(diagnose(settings(cache_dir=tmp_path / "cache")), "database")

    assert found.status == "fail"
    assert "no apt-get" in found.found
    assert "DATABASE_URL" in found.remedy


@pytest.mark.parametrize(("gigabytes", "status"), [(0.5, "fail"), (5, "warn"), (50, "ok")])
def test_little_disk_space_is_told(settings, monkeypatch, gigabytes, status):
    usage = shutil._ntuple_diskusage(100 << 30, 0, int(gigabytes * (1 << 30)))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    (found,) = host.disk(settings())

    assert found.status == status


def test_a_port_that_another_program_has_is_to_mind(settings):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        api, dagster = host.ports(settings(api_port=other.getsockname()[1]))

    assert (api.status, dagster.status) == ("warn", "ok")
    assert "PRESAGE_API_PORT" in api.remedy


def test_a_port_where_presage_itself_answers_is_well(settings, web):
    port, asked = web

    api, _ = host.ports(settings(api_port=port))

    assert (api.status, api.found) == ("ok", f"the API answers on port {port} of 127.0.0.1")
    assert asked == ["/health"]


def test_packages_other_than_required_are_a_failure(monkeypatch):
    monkeypatch.setattr(host.metadata, "requires", lambda _: ["rich>=999", "no-such-package", "tests; extra == 'dev'"])

    found = host.packages()

    assert found.status == "fail"
    assert "rich>=999 (" in found.found
    assert "no-such-package (missing)" in found.found
    assert "tests" not in found.found


def test_the_packages_here_are_as_required():
    assert host.packages().status == "ok"


def test_the_exchange_is_asked_only_on_demand(settings, web):
    port, asked = web
    given = settings(
        gamma_url=f"http://127.0.0.1:{port}/gamma",
        clob_url=f"http://127.0.0.1:{port}/clob",
        data_api_url="http://127.0.0.1:9",
        clob_socket_url=f"ws://127.0.0.1:{port}/ws/market",
    )
    assert [finding for finding in diagnose(given) if finding.topic == "exchange"] == []
    assert asked == []

    found = [finding.status for finding in diagnose(given, live=True) if finding.topic == "exchange"]

    assert found == ["ok", "ok", "fail", "fail"]  # nothing listens on port 9, and this server speaks no WebSocket
    assert asked == ["/gamma/markets?limit=1", "/clob/time", "/ws/market"]


def test_findings_fit_a_terminal_with_their_remedies():
    from rich.console import Console

    console = Console(width=60, record=True, file=Path("/dev/null").open("w"))  # noqa: SIM115
    console.print(table([Finding("disk", "fail", "0.1 GB [free]", "free space"), Finding("clock", "ok", "agree")]))
    console.file.close()
    text = console.export_text()

    assert "0.1 GB [free]" in text
    assert "→ free space" in text
    assert max(map(len, text.splitlines())) <= 60


@pytest.fixture
def run(monkeypatch, settings):
    """Run the command with the given environment variables."""

    def command(*arguments, **environment):
        base = settings()
        ports = {"PRESAGE_API_PORT": str(base.api_port), "PRESAGE_DAGSTER_PORT": str(base.dagster_port)}
        for name, value in (ports | environment).items():
            monkeypatch.setenv(name, value)
        configuration.get.cache_clear()
        app = typer.Typer()
        app.command()(doctor)
        result = CliRunner().invoke(app, list(arguments))
        configuration.get.cache_clear()
        return result

    return command


def test_the_command_ends_well_when_nothing_fails(run, conn, database_url, named_databases):
    start_jobs(conn)

    result = run(DATABASE_URL=database_url)

    assert "0 failed" in result.output
    assert result.exit_code == 0


def test_the_command_ends_with_1_when_something_fails(run):
    result = run(DATABASE_URL="postgresql://127.0.0.1:9/presage")

    assert result.exit_code == 1
    assert "1 failed" in result.output


def test_settings_that_make_no_sense_are_a_finding(run):
    result = run(PRESAGE_API_WORKERS="none")

    assert result.exit_code == 1
    assert "api_workers" in result.output
    assert ".env.example" in result.output


def test_a_chain_that_is_not_configured_is_to_mind(settings, database_url):
    found = of(diagnose(settings(database_url=SecretStr(database_url))), "chain")

    assert (found.status, "PRESAGE_CHAIN_RPC_URLS" in found.remedy) == ("warn", True)


def test_endpoints_of_the_chain_are_asked_on_demand_and_their_keys_not_told(settings, anvil):
    given = settings(chain_rpc_urls=SecretStr(f"{anvil.url}/?key=key-of-mine, http://127.0.0.1:9/key-of-mine"))

    (configured, *others) = [finding for finding in diagnose(given) if finding.topic == "chain"]
    assert (configured.status, others) == ("ok", [])
    assert configured.found.startswith("2 endpoints")

    found = [finding for finding in diagnose(given, live=True) if finding.topic == "chain"]
    assert [finding.status for finding in found] == ["ok", "ok", "fail"]
    assert "block " in found[1].found
    assert "key-of-mine" not in str(found)


def test_contracts_that_make_no_sense_are_a_failure(settings, tmp_path):
    file = tmp_path / "contracts.json"
    file.write_text('[{"name": "x", "address": "0x12", "kind": "exchange_v2"}]')

    found = of(diagnose(settings(chain_contracts=file)), "chain")

    assert found.status == "fail"
    assert "not an address" in found.found


def test_plain_http_for_other_machines_is_to_mind(settings):
    assert not list(host.exposure(settings()))
    (finding,) = host.exposure(settings(api_host="0.0.0.0"))
    assert finding.status == "warn"
    assert "without TLS" in str(finding)
