"""The market explorer and the page of one market."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from api.site.visit import Page, Refusal

if TYPE_CHECKING:
    from api.site.visit import Visit

PAGE = 50
MAX_OFFSET = 10_000
STATES = ("ACTIVE", "CLOSED", "RESOLVED")
RANKINGS = {
    "active": "Most active",
    "volume": "Volume",
    "trades": "Trades",
    "trending": "Trending",
    "breaking": "Breaking",
    "new": "New",
    "ending": "Ending soon",
}
ABOUT = {
    "active": "by volume in the last 24 hours",
    "volume": "by US dollars traded",
    "trades": "by the number of trades",
    "trending": "by the last hour's volume against its 24-hour average",
    "breaking": "by the largest price move within an hour",
    "new": "listed within a week, newest first",
    "ending": "ending within a week, soonest first",
}
PERIODS = ("1h", "24h", "7d")
MAX_TRADES, MAX_SIGNALS, MAX_RELATED, MAX_LEVELS = 30, 10, 12, 15


async def explorer(visit: Visit) -> Page:
    """List markets: searched, filtered or ranked."""
    asked: dict[str, Any] = {
        "q": visit.param("q"),
        "sort": visit.choice("sort", RANKINGS, "active"),
        "status": visit.choice("status", STATES, ""),
        "category": visit.param("category"),
        "tag": visit.param("tag"),
        "period": visit.choice("period", PERIODS, "24h"),
        "offset": visit.number("offset", MAX_OFFSET),
    }
    found, categories = await asyncio.gather(
        _listed(visit, asked), visit.fetch_optional("/v1/categories", max_age_s=60)
    )
    markets, more = found
    title = f"Markets with “{asked['q']}”" if asked["q"] else f"Markets, {RANKINGS[asked['sort']].lower()}"
    return Page(
        template="explorer",
        title=title,
        description="Prediction markets with their live prices, " + ABOUT[asked["sort"]] + ".",
        data={
            "markets": await visit.with_prices(markets),
            "more": more,
            "asked": asked,
            "about": ABOUT[asked["sort"]],
            "rankings": RANKINGS,
            "periods": PERIODS,
            "states": STATES,
            "categories": [each for each in categories or [] if each["category"]],
        },
    )


async def _listed(visit: Visit, asked: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the requested markets, and the next page's query parameters."""
    sort, offset = asked["sort"], asked["offset"]
    status = asked["status"] or None
    if asked["q"]:
        return await visit.fetch("/v1/markets/search", q=asked["q"], status=status, limit=PAGE * 2), None
    if sort in {"volume", "trades"}:
        return await visit.fetch("/v1/markets/top", by=sort, period=asked["period"], limit=PAGE), None
    if sort in {"trending", "breaking"}:
        return (await visit.fetch(f"/v1/markets/{sort}", limit=PAGE))["data"], None
    if sort in {"new", "ending"}:
        path, within = ("new", {"hours": 168}) if sort == "new" else ("resolving", {"within": "7d"})
        markets = (await visit.fetch(f"/v1/markets/{path}", limit=PAGE, offset=offset, **within))["data"]
        return markets, {"offset": offset + PAGE} if len(markets) == PAGE else None
    page = await visit.fetch(
        "/v1/markets",
        status=status,
        category=asked["category"] or None,
        tag=asked["tag"] or None,
        limit=PAGE,
        cursor=visit.request.query_params.get("cursor") or None,
    )
    return page["data"], {"cursor": page["next_cursor"]} if page["has_more"] else None


async def market(visit: Visit) -> Page:
    """Show one market, for one of its outcomes."""
    name = visit.path_part("id")
    found = await visit.fetch(f"/v1/markets/{name}")
    outcome = visit.number("outcome", 999)
    if outcome and outcome >= len(found["outcomes"]):
        raise Refusal(404, "The market has no such outcome")
    of = f"/v1/markets/{found['market_id']}"
    price, book, trades, signals, related, sentiment = await asyncio.gather(
        visit.fetch_optional(f"{of}/price", outcome=outcome),
        visit.fetch_optional(f"{of}/orderbook", outcome=outcome, max_age_s=0.4),
        visit.fetch_optional(f"{of}/trades", outcome=outcome, limit=MAX_TRADES),
        visit.fetch_optional(f"{of}/signals", max_age_s=5),
        visit.fetch_optional(f"{of}/related", max_age_s=30),
        visit.fetch_optional(f"{of}/sentiment", max_age_s=5),
    )
    outcomes = found["outcomes"] or ["Yes"]
    slug = found["slug"] or found["market_id"]
    return Page(
        template="market",
        title=found["question"],
        description=f"{found['question']} Live price, chart, order book, trades and signals.",
        data={
            "market": found,
            "slug": slug,
            "symbol": f"{slug}.{outcome}" if outcome else slug,
            "outcome": outcome,
            "outcomes": outcomes,
            "name": outcomes[outcome],
            "price": price,
            "book": _cut(book),
            "trades": trades or [],
            "signals": (signals or [])[:MAX_SIGNALS],
            "related": ((related or {}).get("data") or [])[:MAX_RELATED],
            "sentiment": sentiment,
            "stats": found["stats_24h"] if not outcome else None,
            "api": f"{visit.site.api_url}{of}",
        },
    )


def _cut(book: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the book's top levels, each with its cumulative size."""
    if book is None:
        return None
    sides = {}
    for side in ("bids", "asks"):
        total, levels = 0.0, []
        for level in book[side][:MAX_LEVELS]:
            total += level["size"]
            levels.append({**level, "total": total})
        sides[side] = levels
    return book | sides
