"""State shared by all pages: the API client, the documents and the site's URLs."""

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
    from api.site.live import LiveHub
    from api.site.reference import Reference

NOTICES = {
    "simulated": "Simulated data: no market here is real.",
    "tape": "Replayed data: a recording, not live.",
}


@dataclass(frozen=True, kw_only=True)
class Site:
    """The site's components and settings."""

    backend: Backend
    hub: LiveHub
    assets: Assets
    guides: Guides
    reference: Reference
    proxies: Proxies
    passes: Passes = field(default_factory=lambda: Passes(secrets.token_bytes(32)))
    tiers: list[dict[str, Any]] = field(default_factory=list)
    source: str = "exchange"
    api_url: str = "http://127.0.0.1:8080"  # as users reach it
    url: str = ""  # as users reach it; empty: taken from each request

    @property
    def notice(self) -> str:
        """Return a notice about data that is not the real exchange's; empty otherwise."""
        return NOTICES.get(self.source, "")

    @property
    def stream_url(self) -> str:
        """Return the stream's URL."""
        return f"ws{self.api_url.removeprefix('http')}/stream"
