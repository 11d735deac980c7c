"""A database of three hosts: etcd, and PostgreSQL by Patroni with the configuration that deployment.md describes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from sql.embedded import installation
from sql.embedded.account import Account, account
from tests.debian_programs import cluster_program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cluster.host import Host, Program

ROOT = Path(__file__).parents[2]
LOCK = Path(__file__).with_name("patroni.lock")
DEPLOYED = ROOT / "deploy/patroni"
PASSWORD = "of-the-tests"
PORT, REST_PORT = 5432, 8008


def python_of(user: Account) -> Path:
    """Return an interpreter that the server's user may start: ours may be below root's home."""
    for each in (Path(sys.executable).resolve(), Path("/usr/bin/python3").resolve()):
        if each.exists() and user.reaches(each.parent):
            return each
    raise RuntimeError(f"{user.name} can start neither {sys.executable} nor /usr/bin/python3: install Debian's python3")


def installed(python: Path) -> Path:
    """Return the folder with Patroni's packages for an interpreter; the first call installs them."""
    digest = hashlib.sha256(f"{python}\n{LOCK.read_text()}".encode()).hexdigest()[:12]
    into = installation.cache_root().parent / "patroni" / digest
    into.mkdir(parents=True, exist_ok=True)
    with (into / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (into / "complete").exists():
            uv = (Path(sys.executable).with_name("uv"), "pip", "install", "-q", "--require-hashes", "-r", LOCK)
            subprocess.run([*uv, "--python", python, "--target", into / "site"], check=True)
            (into / "complete").touch()
    return into / "site"


class Database:
    """The programs of the database's hosts, and what Patroni says of them."""

    def __init__(self, hosts: Sequence[Host], folder: Path) -> None:
        self.hosts = hosts
        self._folder = folder
        self._user = account(folder / "none")
        self._python = python_of(self._user)
        self._site = installed(self._python)
        self._bin = installation.install().program("postgres").parent
        for host in hosts:
            host.add("etcd", self._etcd(host))
            host.add("patroni", self._patroni(host), user=self._user)

    def _etcd(self, host: Host) -> Program:
        at = f"http://{host.address}"
        members = ",".join(f"{each.name}=http://{each.address}:2380" for each in self.hosts)
        options = {
            "name": host.name,
            "data-dir": host.folder / "etcd",
            "listen-client-urls": f"{at}:2379",
            "advertise-client-urls": f"{at}:2379",
            "listen-peer-urls": f"{at}:2380",
            "initial-advertise-peer-urls": f"{at}:2380",
            "initial-cluster": members,
            "log-level": "warn",
        }
        return [*cluster_program("etcd"), *(f"--{name}={value}" for name, value in options.items())], {}

    def _patroni(self, host: Host) -> Program:
        home = host.folder / "database"
        home.mkdir(mode=0o700)
        self._user.own(home)
        configuration = host.folder / "patroni.yml"
        configuration.write_text((DEPLOYED / "patroni.yml").read_text())
        configuration.chmod(0o644)
        return [self._python, "-m", "patroni", configuration], {
            "PYTHONPATH": str(self._site),
            "PATRONI_NAME": host.name,
            "PATRONI_ETCD3_HOSTS": ",".join(f"{each.address}:2379" for each in self.hosts),
            "PATRONI_RESTAPI_LISTEN": f"{host.address}:{REST_PORT}",
            "PATRONI_RESTAPI_CONNECT_ADDRESS": f"{host.address}:{REST_PORT}",
            "PATRONI_POSTGRESQL_LISTEN": f"{host.address}:{PORT}",
            "PATRONI_POSTGRESQL_CONNECT_ADDRESS": f"{host.address}:{PORT}",
            "PATRONI_POSTGRESQL_DATA_DIR": str(home / "data"),
            "PATRONI_POSTGRESQL_BIN_DIR": str(self._bin),
            "PATRONI_POSTGRESQL_PGPASS": str(home / "pgpass"),
            "PATRONI_SUPERUSER_USERNAME": "postgres",
            "PATRONI_SUPERUSER_PASSWORD": PASSWORD,
            "PATRONI_REPLICATION_USERNAME": "replicator",
            "PATRONI_REPLICATION_PASSWORD": PASSWORD,
        }

    def members(self) -> dict[str, dict[str, object]]:
        """Return each member's role, state and timeline, as the primary says: one that was cut off knows what was."""
        primary = self.primary()
        try:
            answer = httpx.get(f"http://{primary.address}:{REST_PORT}/cluster", timeout=2) if primary else None
        except httpx.HTTPError:
            return {}
        if answer is None or answer.status_code != 200:
            return {}
        return {member["name"]: member for member in answer.json()["members"]}

    def primary(self) -> Host | None:
        """Return the host that accepts writes, if there is one."""
        for host in self.hosts:
            try:
                if httpx.get(f"http://{host.address}:{REST_PORT}/primary", timeout=1).status_code == 200:
                    return host
            except httpx.HTTPError:
                continue
        return None

    def whole(self) -> bool:
        """Return whether there are a primary and as many replicas as there should be, any of which can acknowledge."""
        members = [(str(member["role"]), str(member["state"])) for member in self.members().values()]
        replicas = [("quorum_standby", "streaming")] * (len(self.hosts) - 1)
        return sorted(members) == [("leader", "running"), *replicas]


def proxy(host_folder: Path, address: str, hosts: Sequence[Host]) -> Program:
    """Return the command and environment of an HAProxy whose port 5000 is the primary."""
    configuration = host_folder / "haproxy.cfg"
    configuration.write_text((DEPLOYED / "haproxy.cfg").read_text())
    addresses = {f"PATRONI_{number}": host.address for number, host in enumerate(hosts, start=1)}
    return [*cluster_program("haproxy"), "-db", "-f", configuration], {"LISTEN": address, **addresses}


def database_url(address: str, name: str = "presage", port: int = 5000) -> str:
    """Return the owner's URL of a database behind a proxy at an address."""
    return f"postgresql://postgres:{PASSWORD}@{address}:{port}/{name}"


def bare_environment() -> dict[str, str]:
    """Return this process's environment without settings of its own Presage, database or Patroni."""
    unwanted = ("DATABASE_", "DAGSTER_", "PRESAGE_", "PATRONI_", "PG", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
