"""Six consecutive ports, one for each service."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Self

NAMES = ("api", "sandbox", "dagster", "code", "database", "site")
FIRST_BASE, STEP, TRIES = 8080, 10, 50


class TakenError(Exception):
    """A required port is in use."""


@dataclass(frozen=True)
class Ports:
    """The services' ports on 127.0.0.1."""

    api: int
    sandbox: int
    dagster: int
    code: int
    database: int
    site: int

    @classmethod
    def of(cls, base: int) -> Self:
        """Return base for the API, base + 1 for the sandbox, then Dagster's UI, its code server, database and site."""
        return cls(*range(base, base + len(NAMES)))

    def taken(self) -> dict[str, int]:
        """Return the ports that are already in use."""
        return {name: port for name in NAMES if not free(port := getattr(self, name))}


def free(port: int) -> bool:
    """Return whether the port of 127.0.0.1 is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose(base: int | None) -> Ports:
    """Return the requested ports, or the first six consecutive free ones; raises TakenError if any is in use."""
    if base is None:
        for candidate in range(FIRST_BASE, FIRST_BASE + STEP * TRIES, STEP):
            if not Ports.of(candidate).taken():
                return Ports.of(candidate)
        raise TakenError(f"no six consecutive free ports from {FIRST_BASE} on; choose a base with --port-base")
    ports = Ports.of(base)
    if taken := ports.taken():
        whom = ", ".join(f"{port} (for the {name})" for name, port in taken.items())
        raise TakenError(f"already in use: port {whom}; choose other ports with --port-base")
    return ports
