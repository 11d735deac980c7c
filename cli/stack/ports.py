"""Six ports in a row, one for each who listens."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Self

NAMES = ("api", "sandbox", "dagster", "code", "database", "site")
FIRST_BASE, STEP, TRIES = 8080, 10, 50


class TakenError(Exception):
    """Somebody else listens there."""


@dataclass(frozen=True)
class Ports:
    """Who listens where, on 127.0.0.1."""

    api: int
    sandbox: int
    dagster: int
    code: int
    database: int
    site: int

    @classmethod
    def of(cls, base: int) -> Self:
        """Give base to the API, base + 1 to the sandbox, then Dagster's UI, its code server, the database, the site."""
        return cls(*range(base, base + len(NAMES)))

    def taken(self) -> dict[str, int]:
        """Find those where somebody listens already."""
        return {name: port for name in NAMES if not free(port := getattr(self, name))}


def free(port: int) -> bool:
    """Say whether the port of 127.0.0.1 can be listened on."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose(base: int | None) -> Ports:
    """Take the ports asked for, or the first six in a row that are free; TakenError says which are not."""
    if base is None:
        for candidate in range(FIRST_BASE, FIRST_BASE + STEP * TRIES, STEP):
            if not Ports.of(candidate).taken():
                return Ports.of(candidate)
        raise TakenError(f"no six free ports in a row from {FIRST_BASE} on; name a place with --port-base")
    ports = Ports.of(base)
    if taken := ports.taken():
        whom = ", ".join(f"{port} (for the {name})" for name, port in taken.items())
        raise TakenError(f"somebody listens already on port {whom}; choose other ports with --port-base")
    return ports
