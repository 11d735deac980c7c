"""State shared by all pages: the API client, the documents and the site's URLs."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from api.openapi import document as openapi
from api.server.address import Proxies
from api.site.assets import Assets
from api.site.backend import Backend
from api.site.credentials import Credentials
from api.site.guides import Guides
from api.site.live import LiveHub
from api.site.passes import Passes
from api.site.reference import Reference

if TYPE_CHECKING:
    from config.settings import Settings

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
    passes: Passes = field(default_factory=lambda: Passes([secrets.token_bytes(32)]))
    tiers: list[dict[str, Any]] = field(default_factory=list)
    token: str = ""  # by which the API knows the site
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


def build_site(given: Settings) -> Site:
    """Build the site from the settings."""
    if given.database_url is None:
        raise LookupError("DATABASE_URL is not set: `presage up` sets it for the embedded database")
    credentials = Credentials(given.database_url.get_secret_value())
    backend = Backend(given.api_url, credentials)
    names = ("tier", "credits_month", "credits_burst", "max_keys", "max_webhooks", "max_connections")
    return Site(
        backend=backend,
        hub=LiveHub(backend, credentials),
        assets=Assets(given.node_modules),
        guides=Guides(),
        reference=Reference(openapi.document()),
        proxies=Proxies(given.trusted_proxies),
        passes=Passes(credentials.secrets()),
        tiers=[dict(zip(names, tier, strict=True)) for tier in credentials.tiers()],
        token=given.site_token.get_secret_value() if given.site_token else "",
        source=given.source,
        api_url=(given.public_api_url or given.api_url).rstrip("/"),
        url=given.public_site_url,
    )
