"""The embedded server: who runs it, who may connect, and what happens when it or its starter is killed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psycopg
import pytest

from sql.embedded import Cluster, EmbeddedError, account, configuration, place, postmaster, preparation
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
SMALL = {"shared_buffers": "16MB", "fsync": "off"}
# A process that starts a server and waits, as `presage demo` does. Under nohup, hangups would be ignored.
STARTER = """
import signal, sys, time
from pathlib import Path
from sql.embedded import Cluster
signal.signal(signal.SIGHUP, signal.SIG_DFL)
with Cluster(Path(sys.argv[1]), settings={"shared_buffers": "16MB"}) as server:
    print(server.pid, flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module", autouse=True)
def _fallback():
    """Return where root keeps data that others cannot reach: in tests a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="presage-fallback-") as made, pytest.MonkeyPatch.context() as patch:
        Path(made).chmod(0o755)
        patch.setattr(place, "FALLBACK", Path(made))
        yield


@pytest.fixture
def folder():
    """A new folder that the unprivileged user can enter (pytest's own are root's alone)."""
    with tempfile.TemporaryDirectory(prefix="presage-") as made:
        Path(made).chmod(0o755)
        yield Path(made) / "database"


@pytest.fixture
def make(folder):
    """Create clusters, and stop them at the end."""
    made = []

    def cluster(data_dir=folder, **options):
        made.append(Cluster(data_dir, settings=SMALL, **options))
        return made[-1]

    yield cluster
    for each in made:
        each.erase()


@pytest.fixture(scope="module")
def server():
    """A running server that tests leave unchanged."""
    with tempfile.TemporaryDirectory(prefix="presage-") as made:
        Path(made).chmod(0o755)
        with Cluster(Path(made) / "database", settings=SMALL) as running:
            yield running


def ask(url, question):
    with psycopg.connect(url) as conn:
        return conn.execute(question).fetchone()[0]


def gone(pid, within_s=60):
    until = time.monotonic() + within_s
    while postmaster.alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not postmaster.alive(pid)


def test_it_is_a_postgresql_17_with_timescaledb(server):
    with psycopg.connect(server.url("postgres"), autocommit=True) as conn:
        conn.execute("create extension timescaledb")

        assert conn.execute("show server_version_num").fetchone()[0].startswith("17")
        assert conn.execute("select current_setting('timescaledb.license')").fetchone() == ("apache",)
        assert conn.execute("show timezone").fetchone() == ("UTC",)
        assert conn.execute("select datcollate from pg_database where datname = 'postgres'").fetchone() == ("C.UTF-8",)


def test_it_never_runs_as_root(server):
    uid = Path(f"/proc/{server.pid}").stat().st_uid

    assert uid != 0
    assert os.geteuid() in {0, uid}


def test_only_its_owner_can_enter_the_folder_of_the_socket(server):
    folder = server.home / "socket"

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(server.home.stat().st_mode) == 0o700
    assert folder.stat().st_uid == Path(f"/proc/{server.pid}").stat().st_uid
    assert ask(server.url("postgres"), "show listen_addresses") == ""


def test_a_second_cluster_uses_the_server_that_runs_and_leaves_it_running(server):
    with Cluster(server.data_dir) as second:
        assert second.pid == server.pid

    assert ask(server.url("postgres"), "select 1") == 1


def test_a_running_server_without_the_wanted_port_is_not_taken(server):
    with pytest.raises(EmbeddedError, match=r"already runs over .* not on port 1") as failure:
        Cluster(server.data_dir, port=1).start()

    assert "stop that one first" in failure.value.remedy


def test_a_database_is_made_once_whatever_its_name(server):
    name = 'odd "name" & 100%'

    server.create_database(name)
    server.create_database(name)

    assert ask(server.url(name), "select current_database()") == name


def test_two_starts_at_once_give_one_server(make):
    clusters = [make(), make()]
    threads = [threading.Thread(target=cluster.start) for cluster in clusters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert clusters[0].pid is not None
    assert clusters[0].pid == clusters[1].pid


def test_data_are_kept_between_runs_and_erased_on_demand(make):
    cluster, steps = make(), []
    cluster.start(steps.append)
    cluster.create_database("kept")
    cluster.stop()
    assert cluster.pid is None

    cluster.start(steps.append)

    assert steps.count("creating the database") == 1
    assert ask(cluster.url("kept"), "select 1") == 1
    cluster.erase()
    assert cluster.pid is None
    assert not cluster.home.exists()


def test_a_killed_server_starts_again_with_its_data(make):
    cluster = make()
    cluster.start()
    with psycopg.connect(cluster.url("postgres")) as conn:
        conn.execute("create table kept as select 7 as n")
    for _ in range(3):
        os.kill(cluster.pid, signal.SIGKILL)

        cluster.start()

        assert ask(cluster.url("postgres"), "select n from kept") == 7


def test_a_lock_whose_process_number_another_program_has_is_cleared(make):
    cluster = make()
    cluster.start()
    cluster.stop()
    lock = f"{os.getpid()}\n{cluster.home}\n1\n5432\n{cluster.home}/socket\n\n1 1\nready   \n"
    (cluster.home / "17/postmaster.pid").write_text(lock)
    (cluster.home / "socket/.s.PGSQL.5432.lock").write_text(lock)
    assert cluster.pid is None

    cluster.start()

    assert ask(cluster.url("postgres"), "select 1") == 1


def test_a_half_made_cluster_is_made_anew(make):
    cluster = make()
    cluster.start()
    cluster.stop()
    half = cluster.home / "17.part"
    (cluster.home / "17").rename(half)
    (half / "PG_VERSION").unlink()

    cluster.start()

    assert ask(cluster.url("postgres"), "select 1") == 1
    assert not half.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_server_ends_with_a_starter_that_is_told_to_end(folder, make, number):
    make()
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, folder], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    pid = int(starter.stdout.readline())

    starter.send_signal(number)
    starter.communicate(timeout=120)

    assert starter.returncode == (-signal.SIGINT if number == signal.SIGINT else 128 + number)
    assert gone(pid, within_s=0)
    assert not (Cluster(folder).home / "17/postmaster.pid").exists()  # in order: nothing to recover


def test_a_server_whose_starter_was_killed_is_taken_over_and_ended(folder, make):
    make()
    starter = subprocess.Popen([sys.executable, "-c", STARTER, folder], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    pid = int(starter.stdout.readline())
    starter.kill()
    starter.communicate()
    assert postmaster.alive(pid)

    with Cluster(folder) as cluster:
        assert cluster.pid == pid

    assert gone(pid, within_s=0)


@pytest.mark.parametrize("end", ["Cluster(folder).stop()", "cluster.leave_running()"])
def test_python_ends_without_a_complaint_about_a_server_that_another_stopped_or_that_is_left_running(folder, make, end):
    make()
    code = (
        "import sys; from pathlib import Path; from sql.embedded import Cluster; folder = Path(sys.argv[1]);"
        f" cluster = Cluster(folder); cluster.start(); {end}; del cluster"
    )
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", code, folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_by_tcp_only_the_password_opens(make):
    port = free_port()
    cluster = make(port=port)
    cluster.start()

    assert ask(cluster.tcp_url("postgres"), "select inet_server_addr()::text") == "127.0.0.1/32"
    assert ask(cluster.tcp_url("postgres"), "show listen_addresses") == "127.0.0.1"
    assert stat.S_IMODE((cluster.home / "password").stat().st_mode) == 0o600
    for wrong in (
        f"postgresql://presage:wrong@127.0.0.1:{port}/postgres",
        f"postgresql://presage@127.0.0.1:{port}/postgres",
    ):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(wrong, passfile="/nonexistent")


def test_without_a_port_there_is_no_tcp_address(server):
    with pytest.raises(EmbeddedError, match="only on its socket"):
        server.tcp_url()


def test_a_taken_port_is_told_so(make):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(EmbeddedError, match=f"port {port}") as failure:
            make(port=port).start()

    assert failure.value.remedy == "choose another port"


def test_a_path_too_long_for_a_socket_has_its_socket_elsewhere(make, folder):
    cluster = make(folder.parent / ("long" * 25) / "database")
    cluster.start()
    sockets = Path(ask(cluster.url("postgres"), "show unix_socket_directories"))

    assert sockets.parent == Path("/tmp")
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    cluster.erase()
    assert not sockets.exists()


def test_a_socket_folder_that_others_could_have_prepared_is_refused(make, folder):
    cluster = make(folder.parent / ("long" * 25) / "database")
    sockets = place.find(cluster.data_dir).sockets(5432)
    sockets.mkdir(0o755)

    with pytest.raises(EmbeddedError, match="is not a folder that only user"):
        cluster.start()

    shutil.rmtree(sockets)


def test_a_folder_of_other_files_is_not_touched(make, folder):
    folder.mkdir()
    (folder / "thesis.txt").write_text("precious")

    with pytest.raises(EmbeddedError, match="contains files other than"):
        make().start()

    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


def test_data_go_where_their_user_can_come(make, folder):
    folder.mkdir(0o700)  # as root: a folder that the user who runs the server cannot enter, like root's home
    cluster, steps = make(folder / "database"), []

    cluster.start(steps.append)

    elsewhere = any("cannot enter" in step for step in steps)
    assert elsewhere == (os.geteuid() == 0)
    assert cluster.home.is_relative_to(place.FALLBACK if elsewhere else folder)
    assert (cluster.home / "data_dir").exists() == elsewhere
    assert ask(cluster.url("postgres"), "select 1") == 1
    folder.chmod(0o755)
    assert Cluster(folder / "database").home == cluster.home  # existing data stays where it is


def test_as_root_the_owner_of_the_data_runs_the_server(monkeypatch, server):
    owner = (server.home / "17").stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    assert account.account(server.home / "17").uid == owner


def test_root_without_anyone_to_run_as_is_told_so(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(account, "UNPRIVILEGED", ("no-such-user", "root"))

    with pytest.raises(EmbeddedError, match="refuses to run as root") as failure:
        account.account(tmp_path / "new")

    assert "ordinary user" in failure.value.remedy


def test_a_server_that_cannot_start_shows_the_end_of_its_log(make, folder):
    cluster = make()
    cluster.settings["shared_buffers"] = "much"

    with pytest.raises(EmbeddedError, match=r'invalid value for parameter "shared_buffers": "much"') as failure:
        cluster.start()

    assert str(cluster.home / "log") in failure.value.remedy
    assert cluster.pid is None


def test_a_slow_statement_is_logged_with_the_beginning_of_its_parameters(server):
    with psycopg.connect(server.url("postgres"), autocommit=True) as conn:
        conn.execute("set log_min_duration_statement = 0")
        conn.execute("select length(%s)", ["much " * 1_000])

    until = time.monotonic() + 60
    while not (found := [line for line in _logged(server) if "much much" in line]) and time.monotonic() < until:
        time.sleep(0.02)
    assert found
    assert all(len(line) < 500 for line in found)


def _logged(server):
    return [line for path in (server.home / "log").iterdir() for line in path.read_text().splitlines()]


def test_a_disk_too_full_for_a_database_is_told_so(make, monkeypatch):
    monkeypatch.setattr(preparation, "NEEDED_BYTES", 1 << 60)

    with pytest.raises(EmbeddedError, match=r"less than \d+ MB free"):
        make().start()


def test_a_machine_without_time_zones_is_told_so(make, monkeypatch, tmp_path):
    monkeypatch.setattr(preparation, "ZONES", tmp_path)

    with pytest.raises(EmbeddedError, match="no time zone data") as failure:
        make().start()

    assert "tzdata" in failure.value.remedy


def test_by_hand_a_server_is_started_asked_for_and_stopped(folder, make):
    make()

    def run(command):
        return subprocess.run(
            [sys.executable, "-m", "sql.embedded", command, "--data-dir", folder],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    url = run("start")
    pid = Cluster(folder).pid
    assert ask(url, "select current_database()") == "presage"
    assert run("url") == url
    with Cluster(folder) as cluster:  # one that was started by hand is stopped by hand
        assert cluster.pid == pid
    assert postmaster.alive(pid)
    run("stop")
    assert gone(pid)


@pytest.mark.parametrize(
    ("gigabytes", "cores", "shared", "work", "parallel"),
    [(24, 2, "3072MB", "16MB", "1"), (1, 1, "128MB", "4MB", "0"), (256, 64, "4096MB", "16MB", "2")],
)
def test_settings_follow_the_size_of_the_machine(gigabytes, cores, shared, work, parallel):
    settings = configuration.server_settings(gigabytes << 30, cores)

    assert settings["shared_buffers"] == shared
    assert settings["work_mem"] == work
    assert settings["max_parallel_workers_per_gather"] == parallel
    assert settings["max_connections"] == "200"
    assert settings["synchronous_commit"] == "on"


def test_settings_are_quoted():
    assert configuration.written({"log_directory": "/it's"}).endswith("log_directory = '/it''s'\n")
