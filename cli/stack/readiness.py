"""Readiness checks over HTTP and TCP. `python -m cli.stack.readiness URL` is a container's health check."""

from __future__ import annotations

import base64
import json
import socket
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_S = 2.0
# No proxy for loopback, whatever the environment sets.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def listens(port: int, host: str = "127.0.0.1") -> bool:
    """Return whether the port accepts connections."""
    try:
        with socket.create_connection((host, port), timeout=TIMEOUT_S):
            return True
    except OSError:
        return False


def says(file: Path, state: str) -> bool:
    """Return whether a program has written this into its file of states."""
    try:
        return file.read_text().strip() == state
    except OSError:
        return False


def answers(url: str) -> bool:
    """Return whether the URL responds with a 2xx status."""
    try:
        with _opener.open(url, timeout=TIMEOUT_S) as response:
            return bool(200 <= response.status < 300)
    except (OSError, ValueError):
        return False


def fetch(url: str, *, key: str | None = None, password: str | None = None, body: object = None) -> Any:
    """Fetch JSON, of the API with a key or of Dagster with its password; None on any error."""
    headers = {"Accept": "application/json"}
    data = None
    if password is not None:
        from config.settings import DAGSTER_USER  # slow to import, and not needed by health checks

        headers["Authorization"] = "Basic " + base64.b64encode(f"{DAGSTER_USER}:{password}".encode()).decode()
    if key is not None:
        headers["X-API-Key"] = key
    if body is not None:
        headers["Content-Type"] = "application/json"
        data = json.dumps(body).encode()
    try:
        with _opener.open(urllib.request.Request(url, data, headers), timeout=TIMEOUT_S) as response:  # noqa: S310 - our own addresses
            return json.load(response)
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    sys.exit(not answers(sys.argv[1]))
