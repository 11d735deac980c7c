"""What the containers of the database and of its backups run, on the embedded server."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from sql.backup.base import program
from sql.embedded import Cluster, installation
from tests.patience import until

SCRIPT = Path(__file__).parents[2] / "sql/backup/base/container.sh"
PASSPHRASE = "a passphrase that nobody guesses"
SETTINGS = {"shared_buffers": "32MB", "fsync": "off"}


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="presage-container-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


class Container:
    """The script with the environment that docker-compose.yml gives it, as the server's user."""

    def __init__(self, folder, cluster, data, **given) -> None:
        self.cluster = cluster
        pgbackrest = folder / "pgbackrest"
        pgbackrest.write_text(program.launcher(program.install(), installation.install(), pgbackrest))
        environment = {
            "PGDATA": data,
            "PRESAGE_PGBACKREST": pgbackrest,
            "PRESAGE_SOCKETS": cluster._place.sockets(5432),
            "POSTGRES_USER": "presage",
            **given,
        }
        self.command = folder / f"presage-pgbackrest-{cluster.data_dir.name}"
        lines = [f"export {name}={shlex.quote(str(value))}" for name, value in environment.items()]
        self.command.write_text("\n".join(["#!/bin/sh", *lines, SCRIPT.read_text().partition("\n")[2]]))
        for file in (pgbackrest, self.command):
            file.chmod(0o755)

    def run(self, *words):
        done = self.cluster._place.user.run([self.command, *words], cwd=Path("/"))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def test_the_scripts_of_the_containers_back_up_and_restore(folder):
    cluster = Cluster(folder / "database")
    given = {"PRESAGE_BACKUP_REPOSITORY": folder / "backups", "PRESAGE_BACKUP_PASSPHRASE": PASSPHRASE}
    container = Container(folder, cluster, cluster.home / "17", **given)
    cluster.settings = {**SETTINGS, "archive_mode": "on", "archive_command": f"{container.command} archive-push %p"}
    copy = Cluster(folder / "copy", settings=SETTINGS)
    try:
        cluster.start()
        for each in ("backups", "restored"):
            (folder / each).mkdir(mode=0o700)
            cluster._place.user.own(folder / each)
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
            conn.execute("create table kept as select generate_series(1, 1000) as n")
            running = subprocess.Popen(
                [container.command, "run"], start_new_session=True, **cluster._place.user.identity(), umask=0o077
            )
            try:
                until(lambda: "full backup: " in container.run("list"))
            finally:
                os.killpg(running.pid, signal.SIGTERM)  # its sleep too
                running.wait()
            (ended,) = conn.execute("select now()").fetchone()
            # A backup's end is known to the second.
            moment = until(
                lambda: conn.execute("select now() where now() > %s + interval '1.1 s'", [ended]).fetchone()
            )[0]
            conn.execute("drop table kept")
            conn.execute("select pg_switch_wal()")
            container.run("base", "incr")
            assert "incr backup: " in container.run("list")
        assert b"kept" not in b"".join(file.read_bytes()[:4096] for file in (folder / "backups").rglob("*.manifest"))

        # As in a container whose data folder is another volume.
        Container(folder, copy, copy.home / "17", **given).run(
            "restore", f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}", folder / "restored"
        )

        copy._place.make()
        (folder / "restored").rename(copy.home / "17")
        copy.start()
        with psycopg.connect(copy.url("postgres")) as conn:
            assert conn.execute("select count(*) from kept").fetchone() == (1000,)
        stanza = (copy.home / "17/presage.stanza").read_text().strip()
        assert stanza.startswith("presage-")
    finally:
        cluster.erase()
        copy.erase()


def test_without_a_repository_segments_are_passed_over_and_nothing_else_works(folder):
    cluster = Cluster(folder / "database")
    container = Container(folder, cluster, folder / "17", PRESAGE_BACKUP_REPOSITORY="")

    assert container.run("archive-push", "pg_wal/000000010000000000000001") == ""
    refused = subprocess.run([container.command, "list"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr) == (1, "PRESAGE_BACKUP_REPOSITORY is not set\n")
