"""Checks whether the cache at REDIS_URL responds. Nothing depends on it; the pipeline status reports it."""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from urllib.parse import SplitResult

CACHE_TTL_S = 5.0  # how long a result is reused

_last: dict[str, tuple[float, bool]] = {}


def is_up(url: str | None) -> bool:
    """Return whether the server answers PING with PONG, cached for a few seconds."""
    if not url:
        return False
    asked = _last.get(url)
    if asked is None or asked[0] < time.monotonic():
        _last[url] = asked = (time.monotonic() + CACHE_TTL_S, ping(url))
    return asked[1]


def ping(url: str, timeout_s: float = 0.5) -> bool:
    """Send PING, after AUTH if the URL has a password; return whether PONG came back."""
    parts = urlsplit(url)
    try:
        with _connected(parts, timeout_s) as connection:
            if parts.password:
                who = [unquote(parts.username)] if parts.username else []
                connection.sendall(_command("AUTH", *who, unquote(parts.password)))
                connection.recv(256)
            connection.sendall(_command("PING"))
            return connection.recv(256).startswith(b"+PONG")
    except (OSError, ValueError, OverflowError):
        return False


def _connected(parts: SplitResult, timeout_s: float) -> socket.socket:
    if parts.scheme != "unix":
        connection = socket.create_connection((parts.hostname or "localhost", parts.port or 6379), timeout_s)
        if parts.scheme == "rediss":
            return ssl.create_default_context().wrap_socket(connection, server_hostname=parts.hostname)
        return connection
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout_s)
        connection.connect(parts.path)
    except OSError:
        connection.close()
        raise
    return connection


def _command(*words: str) -> bytes:
    """Encode a command in the Redis protocol (RESP)."""
    said = [word.encode() for word in words]
    return b"*%d\r\n" % len(said) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in said)
