"""One request of a page: what it may ask, and what comes of it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.requests import Request

    from api.site.backend import Answer
    from api.site.site import Site

NAME = re.compile(r"(?!\.+\Z)[\w.~+:-]{1,200}\Z")
MOST_PRICES = 100  # that the API gives at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is to be shown, as HTML or as Markdown: both have a template of this name."""

    template: str
    title: str
    description: str
    data: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    keep_s: int = 0  # how long a browser need not ask again
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):  # noqa: N818 (what happened, not a mistake of ours)
    """A page that cannot be shown."""

    def __init__(self, status: int, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.status, self.detail, self.hint = status, detail, hint


class Visit:
    """A request, and the site that it is made to."""

    def __init__(self, request: Request, site: Site) -> None:
        self.request, self.site = request, site

    def given(self, name: str, default: str = "") -> str:
        """Give a parameter of the address."""
        return self.request.query_params.get(name, default).strip()[:200]

    def choice(self, name: str, among: Iterable[str], default: str) -> str:
        """Give a parameter of the address that is one of several words; whatever else is said counts as not said."""
        said = self.given(name)
        return said if said in set(among) else default

    def number(self, name: str, most: int) -> int:
        """Give a parameter of the address that is a number from 0 on."""
        said = self.given(name)
        return min(int(said), most) if said.isascii() and said.isdigit() and len(said) < 10 else 0

    def named(self, name: str) -> str:
        """Give a part of the path, fit to be part of the API's path."""
        said = self.request.path_params[name]
        if not NAME.match(said):
            raise Refusal(404, "There is no such page")
        return quote(said, safe="")

    async def ask(self, path: str, *, fresh_s: float = 1.0, **params: Any) -> Any:
        """Ask the API for what the page cannot be without."""
        return read(await self.site.backend.get(path, params, fresh_s=fresh_s))

    async def perhaps(self, path: str, *, fresh_s: float = 1.0, **params: Any) -> Any:
        """Ask the API for what the page can be without: None if there is nothing."""
        answer = await self.site.backend.get(path, params, fresh_s=fresh_s)
        return answer.data if answer.ok else None

    async def priced(self, markets: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Give markets with their live price of the first outcome in `live`, None where there is none."""
        ids = list(dict.fromkeys(market["market_id"] for market in markets))
        parts = [ids[at : at + MOST_PRICES] for at in range(0, len(ids), MOST_PRICES)]
        found = await asyncio.gather(*(self.perhaps("/v1/prices", ids=",".join(part)) for part in parts))
        prices = {market_id: price for part in found for market_id, price in (part or {}).items()}
        return [{**market, "live": prices.get(market["market_id"])} for market in markets]


def read(answer: Answer) -> Any:
    """Give what the API answered, or say on a page why there is nothing."""
    if answer.ok:
        return answer.data
    if answer.status in {400, 404}:
        problem = answer.data
        raise Refusal(answer.status, problem["detail"], problem["hint"] or "")
    raise Refusal(503, "The service does not answer right now", "Try again in a moment.")
