"""Checks of this machine and installation."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
from importlib import metadata
from typing import TYPE_CHECKING

from cli.diagnosis import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config.settings import Settings

GB = 1 << 30
SHOWN = ("dagster", "falcon", "gunicorn", "gevent", "psycopg", "sqlalchemy", "alembic", "msgspec", "picows")


def python() -> Finding:
    """Report the interpreter; one that is too old could not run this."""
    return Finding("python", "ok", f"Python {platform.python_version()} ({sys.executable})")


def packages() -> Finding:
    """Check that all required packages are installed in a supported version."""
    from packaging.requirements import Requirement

    try:
        required = [Requirement(line) for line in metadata.requires("presage") or []]
    except metadata.PackageNotFoundError:
        return Finding("packages", "fail", "presage itself is not installed", "run `make setup`")
    wrong = []
    for requirement in required:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            version = _version(requirement.name)
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                wrong.append(f"{requirement} ({'missing' if version is None else version})")
    if wrong:
        return Finding("packages", "fail", "not as required: " + ", ".join(wrong), "run `make setup`")
    shown = ", ".join(f"{name} {_version(name)}" for name in SHOWN)
    return Finding("packages", "ok", f"presage {_version('presage')}; {shown}")


def machine() -> Finding:
    """Check processors and memory."""
    from sql.embedded.configuration import memory_bytes

    memory, cores = memory_bytes() / GB, len(os.sched_getaffinity(0))
    found = f"{platform.system()} {platform.machine()}, {cores} cores, {memory:.1f} GB of memory"
    if memory < 3 or cores < 2:
        return Finding("machine", "warn", found, "2 cores and 4 GB are recommended; with less, stages become late")
    return Finding("machine", "ok", found)


def disk(settings: Settings) -> Iterator[Finding]:
    """Check free space in the data directory."""
    folder = settings.data_folder
    there = next(path for path in (folder, *folder.parents) if path.exists())
    space = shutil.disk_usage(there)
    found = f"{space.free / GB:.1f} GB of {space.total / GB:.0f} GB free in {folder}"
    if space.free < GB:
        yield Finding("disk", "fail", found, "free space, or set PRESAGE_DATA_DIR to a larger disk")
    elif space.free < 10 * GB:
        yield Finding("disk", "warn", found, "book events of the whole exchange take several GB a day")
    else:
        yield Finding("disk", "ok", found)


def alerts(settings: Settings) -> Finding:
    """Check that alert receivers are configured."""
    from orchestration.alerts.receivers import receivers

    if names := list(receivers(settings)):
        return Finding("alerts", "ok", f"sent to: {', '.join(names)}; test with `presage alert`")
    remedy = "set PRESAGE_ALERT_WEBHOOK_URL or PRESAGE_ALERT_APPRISE_URLS, and test with `presage alert`"
    return Finding("alerts", "warn", "nobody is notified of failed runs and failing checks", remedy)


def exposure(settings: Settings) -> Iterator[Finding]:
    """Check whether services that speak plain HTTP listen for other machines."""
    for name, host, variable in (
        ("the API", settings.api_host, "PRESAGE_API_HOST"),
        ("the site", settings.site_host, "PRESAGE_SITE_HOST"),
    ):
        if host not in {"127.0.0.1", "::1", "localhost"}:
            found = f"{name} listens on {host} without TLS: keys can be read on the way"
            remedy = f"put a proxy with TLS on this machine in front of it, and set {variable}=127.0.0.1"
            yield Finding("exposure", "warn", found, remedy)


def ports(settings: Settings) -> Iterator[Finding]:
    """Check that the ports are free or used by our own services."""
    for name, host, port, variable, path in (
        ("the API", settings.api_host, settings.api_port, "PRESAGE_API_PORT", "health"),
        ("Dagster", "127.0.0.1", settings.dagster_port, "PRESAGE_DAGSTER_PORT", "server_info"),
    ):
        try:
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
        except OSError as error:
            if _answers(host, port, path):
                yield Finding("port", "ok", f"{name} answers on port {port} of {host}")
                continue
            found = f"port {port} of {host} for {name}: {error.strerror or error}"
            yield Finding("port", "warn", found, f"stop the process that listens there, or set {variable}")
        else:
            yield Finding("port", "ok", f"port {port} of {host} is free for {name}")


def _answers(host: str, port: int, path: str) -> bool:
    import httpx

    there = f"[{host}]" if ":" in host else {"0.0.0.0": "127.0.0.1"}.get(host, host)  # noqa: S104 - compared, not bound
    try:
        return httpx.get(f"http://{there}:{port}/{path}", timeout=2).is_success
    except httpx.HTTPError:
        return False


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
