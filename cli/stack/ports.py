"""Seven consecutive ports, one for each service."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Collection

NAMES = ("api", "sandbox", "dagster", "code", "database", "site", "kalshi")
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
    kalshi: int

    @classmethod
    def of(cls, base: int) -> Self:
        """Return base for the API, then the ports after it in the order of `NAMES`."""
        return cls(*range(base, base + len(NAMES)))

    def taken(self, unneeded: Collection[str] = ()) -> dict[str, int]:
        """Return the ports that are already in use, of those that are needed."""
        return {name: port for name in NAMES if name not in unneeded and not free(port := getattr(self, name))}


def free(port: int) -> bool:
    """Return whether the port of 127.0.0.1 is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose(base: int | None, *, unneeded: Collection[str] = ()) -> Ports:
    """Return the requested ports, or the first seven consecutive free ones; raises TakenError if any is in use."""
    if base is None:
        for candidate in range(FIRST_BASE, FIRST_BASE + STEP * TRIES, STEP):
            if not Ports.of(candidate).taken(unneeded):
                return Ports.of(candidate)
        raise TakenError(f"no seven consecutive free ports from {FIRST_BASE} on; choose a base with --port-base")
    ports = Ports.of(base)
    if taken := ports.taken(unneeded):
        whom = ", ".join(f"{port} (for the {name})" for name, port in taken.items())
        raise TakenError(f"already in use: port {whom}; choose other ports with --port-base")
    return ports
