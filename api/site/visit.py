"""A page request: its parameters, API calls and result."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.requests import Request

    from api.site.backend import ApiResponse
    from api.site.site import Site

NAME = re.compile(r"(?!\.+\Z)[\w.~+:-]{1,200}\Z")
MAX_PRICES = 100  # per request to the API


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page's contents and headers, as HTML or Markdown: both have a template of this name."""

    template: str
    title: str
    description: str
    data: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    keep_s: int = 0  # how long a browser may cache it
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):  # noqa: N818 (an outcome, not a defect)
    """A page that cannot be shown: status, reason and hint."""

    def __init__(self, status: int, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.status, self.detail, self.hint = status, detail, hint


class Visit:
    """A page request and the site that serves it."""

    def __init__(self, request: Request, site: Site) -> None:
        self.request, self.site = request, site

    def param(self, name: str, default: str = "") -> str:
        """Return a query parameter."""
        return self.request.query_params.get(name, default).strip()[:200]

    def choice(self, name: str, among: Iterable[str], default: str) -> str:
        """Return a query parameter that is one of several words; any other value counts as missing."""
        value = self.param(name)
        return value if value in set(among) else default

    def number(self, name: str, maximum: int) -> int:
        """Return a query parameter that is a number from 0 to `maximum`; 0 if invalid."""
        value = self.param(name)
        return min(int(value), maximum) if value.isascii() and value.isdigit() and len(value) < 10 else 0

    def path_part(self, name: str) -> str:
        """Return a path parameter, validated and escaped for use in the API's path."""
        value = self.request.path_params[name]
        if not NAME.match(value):
            raise Refusal(404, "There is no such page")
        return quote(value, safe="")

    async def fetch(self, path: str, *, max_age_s: float = 1.0, **params: Any) -> Any:
        """Return data that the page requires; raises Refusal if the API does not provide it."""
        return read(await self.site.backend.get(path, params, max_age_s=max_age_s))

    async def fetch_optional(self, path: str, *, max_age_s: float = 1.0, **params: Any) -> Any:
        """Return optional data from the API; None if it is not available."""
        answer = await self.site.backend.get(path, params, max_age_s=max_age_s)
        return answer.data if answer.ok else None

    async def with_prices(self, markets: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the markets with the first outcome's live price in `live`, None where there is none."""
        ids = list(dict.fromkeys(market["market_id"] for market in markets))
        parts = [ids[at : at + MAX_PRICES] for at in range(0, len(ids), MAX_PRICES)]
        found = await asyncio.gather(*(self.fetch_optional("/v1/prices", ids=",".join(part)) for part in parts))
        prices = {market_id: price for part in found for market_id, price in (part or {}).items()}
        return [{**market, "live": prices.get(market["market_id"])} for market in markets]


def read(answer: ApiResponse) -> Any:
    """Return a response's data, or raise the Refusal that explains why there is none."""
    if answer.ok:
        return answer.data
    if answer.status in {400, 404}:
        problem = answer.data
        raise Refusal(answer.status, problem["detail"], problem["hint"] or "")
    raise Refusal(503, "The service is not available right now", "Try again in a moment.")
