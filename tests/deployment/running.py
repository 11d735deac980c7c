"""Runs the services of a rendered compose file as specified, inside its own namespaces.

`python running.py config.json report.json`: names of services lead to this machine, folders that an image would hold
are read-only, and every port is free.
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
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
ORDER = ("migrate", "code", "api", "site", "daemon", "webserver")
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18


def mount(source: Path, target: Path, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.fsencode(source), os.fsencode(target), None, flags, None) != 0:
        raise OSError(ctypes.get_errno(), f"mount {source} on {target}")


def loopback_up() -> None:
    with socket.socket() as any_socket:
        # SIOCSIFFLAGS, IFF_UP | IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 0x41))


def isolate(names: list[str], work: Path, dagster_home: Path) -> None:
    loopback_up()
    mount(Path("none"), Path("/"), MS_REC | MS_PRIVATE)
    hosts = work / "hosts"
    hosts.write_text("127.0.0.1 localhost " + " ".join(names) + "\n")
    mount(hosts, Path("/etc/hosts"), MS_BIND)
    for folder in (ROOT, dagster_home):
        mount(folder, folder, MS_BIND | MS_REC)
        mount(folder, folder, MS_BIND | MS_REMOUNT | MS_RDONLY)


def well(check: list[str], environment: dict[str, str]) -> bool:
    assert check[0] == "CMD"
    try:
        subprocess.run(check[1:], cwd=ROOT, env=environment, capture_output=True, check=True, timeout=60)
    except subprocess.SubprocessError:
        return False
    return True


def main(config: Path, report: Path) -> None:
    given = json.loads(config.read_text())
    work, dagster_home = config.parent, Path(given["dagster_home"])
    isolate(list(given["services"]), work, dagster_home)
    told: dict[str, dict[str, object]] = {}
    running: list[subprocess.Popen[bytes]] = []
    try:
        for name in ORDER:
            service = given["services"][name]
            environment = {**given["image"], **{key: value or "" for key, value in service["environment"].items()}}
            began = time.monotonic()
            with (work / f"{name}.log").open("wb") as log:
                process = subprocess.Popen(
                    service["command"], cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
                )
            if "healthcheck" not in service:
                told[name] = {"exit": process.wait(120)}
                continue
            running.append(process)
            check = service["healthcheck"]["test"]
            healthy = False
            while not healthy and process.poll() is None and time.monotonic() - began < 180:
                time.sleep(0.5)
                healthy = well(check, environment)
            told[name] = {"healthy": healthy, "exit": process.poll(), "after_s": round(time.monotonic() - began, 1)}
        told["loaded"] = {
            "text": subprocess.run(
                [sys.executable, "-c", given["asks"]],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
                timeout=250,
            ).stdout
        }
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        until = time.monotonic() + 15
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, until - time.monotonic()))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        report.write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
