"""The page table: the view of each path, and the texts for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.site.views import documents, home, markets, recovery, registration, status, wallets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from api.site.visit import Page, Visit

PAGES: dict[str, Callable[[Visit], Awaitable[Page]]] = {
    "/": home.home,
    "/markets": markets.explorer,
    "/markets/{id}": markets.market,
    "/wallets": wallets.leaderboard,
    "/wallets/{address}": wallets.wallet,
    "/status": status.status,
    "/guides": documents.guides,
    "/guides/{name:path}": documents.guide,
    "/reference": documents.reference,
    "/reference/{name}": documents.operation,
    "/pricing": documents.pricing,
    "/register": registration.form,
    "/recover": recovery.form,
    "/confirm": recovery.link,
}
TEXTS = {
    "/llms.txt": documents.agents,
    "/llms-full.txt": documents.all_for_agents,
    "/robots.txt": documents.robots,
    "/sitemap.xml": documents.sitemap,
}
