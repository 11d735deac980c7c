"""How to know that a program answers. `python -m cli.stack.readiness URL` is a container's health check."""

from __future__ import annotations

import json
import socket
import sys
import urllib.error
import urllib.request
from typing import Any

PATIENCE_S = 2.0
# Loopback needs no proxy, whatever the environment says.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def listens(port: int, host: str = "127.0.0.1") -> bool:
    """Say whether somebody accepts connections."""
    try:
        with socket.create_connection((host, port), timeout=PATIENCE_S):
            return True
    except OSError:
        return False


def answers(url: str) -> bool:
    """Say whether the address answers with success."""
    try:
        with _opener.open(url, timeout=PATIENCE_S) as response:
            return bool(200 <= response.status < 300)
    except (OSError, ValueError):
        return False


def fetch(url: str, *, key: str | None = None, body: object = None) -> Any:
    """Fetch JSON; None when there is no answer, or not a good one."""
    headers = {"Accept": "application/json"}
    data = None
    if key is not None:
        headers["X-API-Key"] = key
    if body is not None:
        headers["Content-Type"] = "application/json"
        data = json.dumps(body).encode()
    try:
        with _opener.open(urllib.request.Request(url, data, headers), timeout=PATIENCE_S) as response:  # noqa: S310 - our own addresses
            return json.load(response)
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    sys.exit(not answers(sys.argv[1]))
