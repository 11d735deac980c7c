"""Whether the cache named by REDIS_URL answers. Nothing depends on it; the pipeline status tells."""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from urllib.parse import SplitResult

ASKED_S = 5.0  # how long an answer is believed

_last: dict[str, tuple[float, bool]] = {}


def answers(url: str | None) -> bool:
    """Tell whether a PING is answered by PONG."""
    if not url:
        return False
    asked = _last.get(url)
    if asked is None or asked[0] < time.monotonic():
        _last[url] = asked = (time.monotonic() + ASKED_S, ping(url))
    return asked[1]


def ping(url: str, patience_s: float = 0.5) -> bool:
    """Send a PING, with the password if the URL has one."""
    parts = urlsplit(url)
    try:
        with _connected(parts, patience_s) as connection:
            if parts.password:
                who = [unquote(parts.username)] if parts.username else []
                connection.sendall(_command("AUTH", *who, unquote(parts.password)))
                connection.recv(256)
            connection.sendall(_command("PING"))
            return connection.recv(256).startswith(b"+PONG")
    except (OSError, ValueError, OverflowError):
        return False


def _connected(parts: SplitResult, patience_s: float) -> socket.socket:
    if parts.scheme != "unix":
        connection = socket.create_connection((parts.hostname or "localhost", parts.port or 6379), patience_s)
        if parts.scheme == "rediss":
            return ssl.create_default_context().wrap_socket(connection, server_hostname=parts.hostname)
        return connection
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(patience_s)
        connection.connect(parts.path)
    except OSError:
        connection.close()
        raise
    return connection


def _command(*words: str) -> bytes:
    """Write a command as the protocol wants it (RESP)."""
    said = [word.encode() for word in words]
    return b"*%d\r\n" % len(said) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in said)
