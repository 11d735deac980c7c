"""Markets requested live from the exchange."""

from __future__ import annotations

import time
from itertools import repeat
from typing import TYPE_CHECKING

import msgspec

from api.data import cursor
from api.errors import Problem
from api.schemas import records
from sql.database import MICRO

if TYPE_CHECKING:
    from api.data.proxy import ExchangeProxy
    from api.endpoints.base.resource import ReadResource
    from api.endpoints.markets.requests import MarketParameters
    from upstream.polymarket.gamma.client import GammaMarket as Listed
    from upstream.transport.http import Value

PAGE_SIZE = 100  # the exchange's page size limit


class ExchangeCursor(msgspec.Struct, frozen=True, array_like=True):
    """A position in the exchange's own list."""

    filter: bytes
    after: str


def cost_of_source(given: MarketParameters) -> int:
    """Return the credits of a list: 2 if it is requested from the exchange, else 1."""
    return 1 if given.source == "local" else 2


def markets(reading: ReadResource, given: MarketParameters) -> bytes:
    """Return a page of the exchange's own list, most traded markets first."""
    exchange, cursors = reading.service.exchange, reading.service.cursors
    if given.offset or given.series:
        name = "offset" if given.offset else "series"
        raise Problem(
            "invalid_parameter",
            f"`{name}` needs `source=local`",
            hint="The exchange's own list supports cursors only, and no series filter",
            errors=[{"name": name, "detail": "needs source=local"}],
        )
    if given.status == "CLOSED":
        raise Problem(
            "invalid_parameter",
            "`status=CLOSED` needs `source=local`",
            hint="The exchange's own list does not distinguish closed from resolved markets",
            errors=[{"name": "status", "detail": "needs source=local", "allowed": "ACTIVE, RESOLVED"}],
        )
    if given.tag and given.category:
        raise Problem("invalid_parameter", "With `source=polymarket`, pass a tag or a category, not both")
    meant = cursor.digest(msgspec.structs.replace(given, limit=50, cursor=None))
    after = None
    if given.cursor is not None:
        place = cursors.read(given.cursor, ExchangeCursor)
        if place.filter != meant:
            raise cursor.invalid("It belongs to a list with a different filter")
        after = place.after

    def ask() -> bytes:
        found, following = _listed(exchange, given, after)
        rows = b",".join(msgspec.json.encode(_market(each, exchange.source)) for each in found)
        tail = cursors.write(ExchangeCursor(meant, following)) if following else ""
        return b'{"data":[%s],"next_cursor":"%s","has_more":%s}' % (
            rows,
            tail.encode(),
            b"true" if tail else b"false",
        )

    return exchange.fetch(("markets", given), "gamma", ask)


def _listed(exchange: ExchangeProxy, given: MarketParameters, after: str | None) -> tuple[list[Listed], str | None]:
    filters: dict[str, Value] = {"order": "volume24hr", "ascending": False}
    if given.status is not None:
        filters["closed"] = given.status != "ACTIVE"
    if name := given.tag or given.category:
        tag_id = exchange.gamma.tag_id(name)
        if tag_id is None:
            return [], None
        filters["tag_id"] = tag_id
    found: list[Listed] = []
    # The exchange filters only by open and closed, not by all of our states: keep reading until the page is full.
    for _ in exchange.until_deadline(repeat(None)):
        page = next(exchange.gamma.market_pages(after, limit=min(given.limit - len(found), PAGE_SIZE), **filters))
        found += [each for each in page.items if given.status is None or each.status() == given.status]
        after = page.next_cursor
        if after is None or len(found) >= given.limit:
            break
    return found, after


def _market(sent: Listed, source: str) -> records.Market:
    row = sent.row(source)

    def seconds(name: str) -> int | None:
        return None if row[name] is None else int(row[name].timestamp())

    def number(name: str) -> float | None:
        return None if row[name] is None else row[name] / MICRO

    return records.Market(
        **{
            name: row[name]
            for name in (
                *("market_id", "slug", "question", "status", "exchange", "event_id", "category", "series", "tags"),
                *("outcomes", "token_ids", "winning_outcome", "neg_risk", "image", "url", "source"),
            )
        },
        outcome_prices=[price / MICRO for price in row["outcome_prices"]],
        start_time=seconds("start_time"),
        end_time=seconds("end_time"),
        created_at=seconds("created_at"),
        resolved_at=seconds("resolved_at"),
        volume_usd=number("volume_usd"),
        volume_24h_usd=None,
        exchange_volume_24h_usd=number("volume_24h_usd"),
        liquidity_usd=number("liquidity_usd"),
        updated_at=int(time.time()),
    )
