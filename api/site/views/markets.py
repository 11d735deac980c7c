"""The explorer of markets, and one market."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from api.site.visit import Page, Refusal

if TYPE_CHECKING:
    from api.site.visit import Visit

PAGE = 50
FARTHEST = 10_000
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
    "active": "by what was traded in the last 24 hours",
    "volume": "by US dollars traded",
    "trades": "by the number of trades",
    "trending": "whose last hour stands out from its day",
    "breaking": "whose price has moved most within an hour",
    "new": "listed within a week, newest first",
    "ending": "that end within a week, the next to end first",
}
PERIODS = ("1h", "24h", "7d")
TRADES, SIGNALS, SIBLINGS, LEVELS = 30, 10, 12, 15


async def explorer(visit: Visit) -> Page:
    """Show markets: found by words, filtered, or ranked."""
    asked: dict[str, Any] = {
        "q": visit.given("q"),
        "sort": visit.choice("sort", RANKINGS, "active"),
        "status": visit.choice("status", STATES, ""),
        "category": visit.given("category"),
        "tag": visit.given("tag"),
        "period": visit.choice("period", PERIODS, "24h"),
        "offset": visit.number("offset", FARTHEST),
    }
    found, categories = await asyncio.gather(_listed(visit, asked), visit.perhaps("/v1/categories", fresh_s=60))
    markets, more = found
    title = f"Markets with “{asked['q']}”" if asked["q"] else f"Markets, {RANKINGS[asked['sort']].lower()}"
    return Page(
        template="explorer",
        title=title,
        description="Prediction markets with their live prices, " + ABOUT[asked["sort"]] + ".",
        data={
            "markets": await visit.priced(markets),
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
    """Give the markets asked for, and what the address of the next page has."""
    sort, offset = asked["sort"], asked["offset"]
    status = asked["status"] or None
    if asked["q"]:
        return await visit.ask("/v1/markets/search", q=asked["q"], status=status, limit=PAGE * 2), None
    if sort in {"volume", "trades"}:
        return await visit.ask("/v1/markets/top", by=sort, period=asked["period"], limit=PAGE), None
    if sort in {"trending", "breaking"}:
        return (await visit.ask(f"/v1/markets/{sort}", limit=PAGE))["data"], None
    if sort in {"new", "ending"}:
        path, within = ("new", {"hours": 168}) if sort == "new" else ("resolving", {"within": "7d"})
        markets = (await visit.ask(f"/v1/markets/{path}", limit=PAGE, offset=offset, **within))["data"]
        return markets, {"offset": offset + PAGE} if len(markets) == PAGE else None
    page = await visit.ask(
        "/v1/markets",
        status=status,
        category=asked["category"] or None,
        tag=asked["tag"] or None,
        limit=PAGE,
        cursor=visit.request.query_params.get("cursor") or None,
    )
    return page["data"], {"cursor": page["next_cursor"]} if page["has_more"] else None


async def market(visit: Visit) -> Page:
    """Show one market, as seen from one of its outcomes."""
    name = visit.named("id")
    found = await visit.ask(f"/v1/markets/{name}")
    outcome = visit.number("outcome", 999)
    if outcome and outcome >= len(found["outcomes"]):
        raise Refusal(404, "The market has no such outcome")
    of = f"/v1/markets/{found['market_id']}"
    price, book, trades, signals, related, sentiment = await asyncio.gather(
        visit.perhaps(f"{of}/price", outcome=outcome),
        visit.perhaps(f"{of}/orderbook", outcome=outcome, fresh_s=0.4),
        visit.perhaps(f"{of}/trades", outcome=outcome, limit=TRADES),
        visit.perhaps(f"{of}/signals", fresh_s=5),
        visit.perhaps(f"{of}/related", fresh_s=30),
        visit.perhaps(f"{of}/sentiment", fresh_s=5),
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
            "signals": (signals or [])[:SIGNALS],
            "related": ((related or {}).get("data") or [])[:SIBLINGS],
            "sentiment": sentiment,
            "stats": found["stats_24h"] if not outcome else None,
            "api": f"{visit.site.api_url}{of}",
        },
    )


def _cut(book: dict[str, Any] | None) -> dict[str, Any] | None:
    """Keep of a book what is shown, each level with what stands up to it."""
    if book is None:
        return None
    sides = {}
    for side in ("bids", "asks"):
        total, levels = 0.0, []
        for level in book[side][:LEVELS]:
            total += level["size"]
            levels.append({**level, "total": total})
        sides[side] = levels
    return book | sides
