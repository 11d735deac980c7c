"""Checks of the settlement chain: contracts and RPC endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.diagnosis import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config.settings import Settings

NO_RPC = "no RPC is configured: settlements, wallets and profits are not indexed"
CONFIGURE_RPC = "set PRESAGE_CHAIN_RPC_URLS to one or more JSON-RPC endpoints of Polygon"


def configuration(settings: Settings) -> Iterator[Finding]:
    """Check that RPC endpoints are configured and the contracts are readable."""
    from orchestration.settlement import chain

    try:
        contracts = chain.followed(settings)
    except (OSError, ValueError) as error:
        yield Finding("chain", "fail", f"contracts: {error}", "correct the file named by PRESAGE_CHAIN_CONTRACTS")
        return
    if urls := chain.urls(settings):
        yield Finding("chain", "ok", f"{len(urls)} endpoints, {len(contracts)} contracts known")
    else:
        yield Finding("chain", "warn", NO_RPC, CONFIGURE_RPC)


def endpoints(settings: Settings) -> Iterator[Finding]:
    """Check that each endpoint responds. Only their hosts are shown: URLs may contain keys."""
    from orchestration.settlement import chain
    from upstream.chain.rpc import Rpc
    from upstream.transport.errors import UpstreamError

    for url in chain.urls(settings):
        with Rpc([url], total_s=10.0, rounds=1) as rpc:
            (name,) = (each["name"] for each in rpc.state())
            try:
                heads = rpc.heads()
            except UpstreamError as error:
                yield Finding("chain", "fail", f"{name}: {error}", "check the URL; --live has just requested it")
            else:
                finality = f"final up to {heads.finalized}" if heads.reported else "reports no finality"
                yield Finding("chain", "ok", f"{name}: block {heads.head}, {finality}")
