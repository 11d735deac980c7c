"""Runs the services of a rendered compose file as specified, each in the root of its image, as its user.

`python running.py config.json report.json`, inside its own network and mount namespaces: names of services lead to this
machine, where a relay is the database's port. What an image brings from elsewhere (Python, system libraries) is this
machine's.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ORDER = ("migrate", "code", "api", "site", "daemon", "webserver", "proxy")
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
KEPT_FLAGS = 2 | 4 | 8  # nosuid, nodev, noexec: in a user's namespace a remount may not drop them
CLONE_NEWNS = 0x20000
# Reports what the process may do, and which of the folders it can write into.
PROBE = """
import json, os, pathlib
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
def writes(folder):
    try:
        (pathlib.Path(folder) / "probe").write_text("")
    except OSError:
        return False
    return True
folders = ["/", "/app", "/app/api", "/opt/dagster", "/opt/presage", "/usr/local", "/etc", "/var"]
folders += ["/exports", "/data", "/config", "/tmp"]
print(json.dumps({
    "user": [os.getuid(), os.getgid(), os.getgroups()],
    "capabilities": [int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")],
    "new privileges": status["NoNewPrivs"] == "0",
    "writes": [folder for folder in folders if writes(folder)],
}))
"""
libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str | Path, target: Path, flags: int = 0, kind: str | None = None, options: str = "") -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    if libc.mount(*words, flags, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount {source} on {target}")


def bind(source: Path, target: Path, *, read_only: bool = True) -> None:
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(source, target, MS_BIND | (0 if read_only else MS_REC))
    if read_only:
        mount(source, target, MS_BIND | MS_REMOUNT | MS_RDONLY | os.statvfs(target).f_flag & KEPT_FLAGS)


def loopback_up() -> None:
    with socket.socket() as any_socket:
        # SIOCSIFFLAGS, IFF_UP | IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 0x41))


def assemble(root: Path, given: dict[str, Any], work: Path) -> None:
    """Mount what the image holds below `root`; nobody can write there."""
    mount("none", Path("/"), MS_REC | MS_PRIVATE)
    mount("tmpfs", root, kind="tmpfs", options="mode=755")
    files = {
        "hosts": "127.0.0.1 localhost " + " ".join(given["names"]),
        "passwd": "root:x:0:0::/root:/bin/sh\npresage:x:10001:10001::/app:/bin/sh",
        "group": "root:x:0:\npresage:x:10001:",
    }
    for name, text in files.items():
        (work / name).write_text(text + "\n")
        (work / name).chmod(0o644)
        bind(work / name, root / "etc" / name)
    for name in ("/usr", "/bin", "/lib", "/lib64", "/etc/ssl", "/etc/ld.so.cache", sys.base_prefix):
        if Path(name).exists():
            bind(Path(name), root / name[1:])
    for source, target in given["copied"]:
        bind(Path(source), root / target[1:])
    for name in ("null", "zero", "full", "random", "urandom"):
        bind(Path("/dev", name), root / "dev" / name, read_only=False)
    bind(Path("/proc"), root / "proc", read_only=False)
    for name in ("tmp", "exports", "data", "config", "dev/shm", "var"):
        (root / name).mkdir(exist_ok=True)
    mount("none", root, MS_REMOUNT | MS_RDONLY)


class Container:
    """A service's file system, user and environment."""

    def __init__(self, root: Path, service: dict[str, Any], image: dict[str, str], volumes: Path) -> None:
        self.root = root
        self.tmpfs = [each.split(":", 1) for each in service["tmpfs"]]
        self.volumes = [
            (volumes / volume["source"], root / volume["target"][1:], volume.get("read_only", False))
            for volume in service.get("volumes", [])
        ]
        self.environment = {**image, **{name: value or "" for name, value in service["environment"].items()}}
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        added = "".join(f",+{name.lower()}" for name in service.get("cap_add", []))
        self.setpriv = ["setpriv", "--inh-caps=-all", f"--bounding-set=-all{added}", "--no-new-privs"]
        user, group = service["user"].split(":")
        if given_root := os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split()[2] != "1":
            self.setpriv += ["--reuid", user, "--regid", group, "--clear-groups"]
        self.user = [int(user), int(group), []] if given_root else None
        if not self.user:  # others' ids mean nothing in this namespace
            self.tmpfs = [[target, options.replace(f"uid={user}", "mode=755")] for target, options in self.tmpfs]
        for source, _, _ in self.volumes:
            if not source.exists():
                source.mkdir(parents=True)
                if self.user:  # as Docker makes a new volume like the image's folder
                    os.chown(source, int(user), int(group))

    def enter(self) -> None:
        """Change to the container's root, with its own tmpfs and volumes; called in the new process."""
        if libc.unshare(CLONE_NEWNS) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        for target, options in [*self.tmpfs, ["/dev/shm", "size=64m,mode=1777"]]:
            mount("tmpfs", self.root / target[1:], kind="tmpfs", options=options)
        for source, target, read_only in self.volumes:
            bind(source, target, read_only=read_only)
        os.chroot(self.root)
        os.chdir("/app")

    def start(self, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.setpriv, *command],
            env=self.environment,
            preexec_fn=self.enter,  # noqa: PLW1509 - there are no threads here
            start_new_session=True,
            **options,
        )

    def output(self, command: list[str]) -> str | None:
        """Run a command to its end and return what it prints, or None if it fails or takes more than a minute."""
        process = self.start(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            printed, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None
        return printed.decode() if process.returncode == 0 else None


def relay(to: str) -> None:
    """Pass connections to port 5432 on to a Unix socket, as `database` is reached over TCP."""

    def copy(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    with socket.create_server(("127.0.0.1", 5432), backlog=128) as server:
        print("listening", flush=True)
        while True:
            client, _ = server.accept()
            database = socket.socket(socket.AF_UNIX)
            database.connect(to)
            for ends in ((client, database), (database, client)):
                threading.Thread(target=copy, args=ends, daemon=True).start()


def main(config: Path, report: Path) -> None:
    given = json.loads(config.read_text())
    work, root = config.parent, config.parent / "root"
    root.mkdir()
    loopback_up()
    assemble(root, given, work)
    for name, value in given["services"]["proxy"]["sysctls"].items():
        Path("/proc/sys", name.replace(".", "/")).write_text(value)
    told: dict[str, dict[str, object]] = {}
    forwarder = subprocess.Popen([sys.executable, __file__, "relay", given["socket"]], stdout=subprocess.PIPE)
    assert forwarder.stdout is not None
    forwarder.stdout.readline()
    running = [forwarder]
    try:
        for name in ORDER:
            service = given["services"][name]
            container = Container(root, service, given["image"], work / "volumes")
            probed = json.loads(container.output(["python", "-c", PROBE]) or "{}")
            told[name] = {"probe": probed, "user": container.user}
            began = time.monotonic()
            with (work / f"{name}.log").open("wb") as log:
                process = container.start(service["command"], stdout=log, stderr=log)
            if "healthcheck" not in service:
                told[name] |= {"exit": process.wait(120)}
                continue
            running.append(process)
            kind, *check = service["healthcheck"]["test"]
            assert kind == "CMD"
            healthy = False
            while not healthy and process.poll() is None and time.monotonic() - began < 180:
                time.sleep(0.5)
                healthy = container.output(check) is not None
            took = round(time.monotonic() - began, 1)
            told[name] |= {"healthy": healthy, "exit": process.poll(), "after_s": took}
        told["loaded"] = {
            "text": subprocess.run(
                [sys.executable, "-c", given["asks"]],
                cwd=given["checkout"],
                capture_output=True,
                text=True,
                check=False,
                timeout=250,
            ).stdout
        }
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM) if process is not forwarder else None
        until = time.monotonic() + 15
        for process in running[1:]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, until - time.monotonic()))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        forwarder.kill()
        forwarder.wait()
        report.write_text(json.dumps(told))


if __name__ == "__main__":
    if sys.argv[1] == "relay":
        relay(sys.argv[2])
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
