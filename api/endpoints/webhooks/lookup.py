"""Looks up the addresses of a webhook's host, so that a name server that does not answer delays nobody else."""

from __future__ import annotations

import socket
from functools import cache
from typing import Any

import gevent
from gevent import monkey
from gevent.threadpool import ThreadPool

MAX_S = 3.0
MAX_AT_ONCE = 4  # lookups of a worker; others wait within their time

blocking_lookup = monkey.get_original("socket", "getaddrinfo")


@cache
def _threads() -> ThreadPool:
    """Return threads of this worker. Gevent's own look up database hosts, which customers must not keep waiting."""
    return ThreadPool(MAX_AT_ONCE)


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses that the system resolves a host to; OSError if there are none, or none within `MAX_S`."""
    with gevent.Timeout(MAX_S, TimeoutError(f"{host} was not resolved within {MAX_S:g} s")):
        found = _threads().apply(_looked_up, (host, port))
    if isinstance(found, OSError):
        raise found
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


def _looked_up(host: str, port: int) -> Any:
    """Return what is found; an error, too: gevent prints what is raised in its threads."""
    try:
        return blocking_lookup(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
