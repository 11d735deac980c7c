"""The chain's endpoints and contracts from the settings."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from upstream.chain import contracts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config.settings import Settings
    from upstream.chain.contracts import Contract
    from upstream.chain.rpc import Rpc

OFF = "no RPC is configured: set PRESAGE_CHAIN_RPC_URLS"


def urls(settings: Settings) -> list[str]:
    """Return the endpoints; none if no chain is to be followed."""
    given = "" if settings.chain_rpc_urls is None else settings.chain_rpc_urls.get_secret_value()
    return [url for each in given.split(",") if (url := each.strip())]


def followed(settings: Settings) -> tuple[Contract, ...]:
    """Return the contracts."""
    return contracts.load(settings.chain_contracts)


@contextmanager
def open_clients(settings: Settings) -> Iterator[tuple[Rpc, Rpc]]:
    """Open clients for a block: one for reading, and one that prefers the last endpoint, for recounts."""
    from upstream.chain.rpc import Rpc  # noqa: PLC0415 (only runs of settlement need an HTTP client of it)

    given = urls(settings)
    with Rpc(given) as rpc, Rpc(given[::-1]) as second:
        yield rpc, second
