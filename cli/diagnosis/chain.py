"""The settlement chain, as far as it can be reached from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.diagnosis import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config.settings import Settings

OFF = "no RPC is configured: settlements, wallets and profits are not indexed"
SET = "set PRESAGE_CHAIN_RPC_URLS to one or more JSON-RPC endpoints of Polygon"


def configuration(settings: Settings) -> Iterator[Finding]:
    """Whether the chain is to be followed, and by which contracts."""
    from orchestration.settlement import chain

    try:
        contracts = chain.followed(settings)
    except (OSError, ValueError) as error:
        yield Finding("chain", "fail", f"contracts: {error}", "correct the file that PRESAGE_CHAIN_CONTRACTS names")
        return
    if urls := chain.urls(settings):
        yield Finding("chain", "ok", f"{len(urls)} endpoints, {len(contracts)} contracts known")
    else:
        yield Finding("chain", "warn", OFF, SET)


def endpoints(settings: Settings) -> Iterator[Finding]:
    """Whether each endpoint answers; their addresses may hold keys, and are told by their host."""
    from orchestration.settlement import chain
    from upstream.chain.rpc import Rpc
    from upstream.transport.errors import UpstreamError

    for url in chain.urls(settings):
        with Rpc([url], total_s=10.0, rounds=1) as rpc:
            (name,) = (each["name"] for each in rpc.state())
            try:
                heads = rpc.heads()
            except UpstreamError as error:
                yield Finding("chain", "fail", f"{name}: {error}", "check the address; --live asked it just now")
            else:
                finality = f"final up to {heads.finalized}" if heads.told else "tells no finality"
                yield Finding("chain", "ok", f"{name}: block {heads.head}, {finality}")
