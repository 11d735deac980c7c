"""What all pages share: the API behind them, the documents, and how the site is known."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from api.site.passes import Passes

if TYPE_CHECKING:
    from api.server.address import Proxies
    from api.site.assets import Assets
    from api.site.backend import Backend
    from api.site.guides import Guides
    from api.site.live import Hub
    from api.site.reference import Reference

SOURCES = {
    "simulated": "Simulated data: no market here is real.",
    "tape": "A recording is replayed: nothing here happens now.",
}


@dataclass(frozen=True, kw_only=True)
class Site:
    """The site, put together."""

    backend: Backend
    hub: Hub
    assets: Assets
    guides: Guides
    reference: Reference
    proxies: Proxies
    passes: Passes = field(default_factory=lambda: Passes(secrets.token_bytes(32)))
    tiers: list[dict[str, Any]] = field(default_factory=list)
    source: str = "exchange"
    api_url: str = "http://127.0.0.1:8080"  # as users know it
    url: str = ""  # as users know it; empty: as each request says

    @property
    def notice(self) -> str:
        """Say what the data is, where it is not the real exchange's."""
        return SOURCES.get(self.source, "")

    @property
    def stream_url(self) -> str:
        """Give the address of the stream."""
        return f"ws{self.api_url.removeprefix('http')}/stream"
