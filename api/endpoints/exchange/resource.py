"""Resources that forward requests to the exchange."""

from __future__ import annotations

import time
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

import msgspec

from api.data import cursor
from api.endpoints.base.resource import ReadResource
from api.endpoints.exchange.records import ClosedPosition, Holding, Position
from api.endpoints.exchange.requests import ForwardedEventParameters
from api.errors import Problem
from api.schemas import records
from upstream.polymarket.fields import outcome_place
from upstream.polymarket.identity import ASSIGNED, trade_id
from upstream.transport.errors import NotFound

if TYPE_CHECKING:
    import falcon

    from api.data.lookup import MarketRef
    from api.data.proxy import ExchangeProxy
    from api.endpoints.exchange.requests import MarketPositionParameters, PositionParameters
    from api.schemas.requests import MarketParameters, TradeParameters
    from upstream.polymarket.data_api.client import ClosedPosition as SentClosed
    from upstream.polymarket.data_api.client import DataApiPosition as Sent
    from upstream.polymarket.data_api.client import DataApiTrade, Holder
    from upstream.polymarket.gamma.client import GammaMarket as Listed
    from upstream.transport.http import Value

MAX_POSITIONS = 2000
PAGE_SIZE = 100  # the exchange's page size limit
MICRO = 1_000_000

_objects = msgspec.json.Decoder(list[msgspec.Raw])
_tag = msgspec.json.Decoder(dict[str, Any])


class ExchangeEvents(ReadResource):
    """Events as the exchange lists them, unchanged."""

    def parse(self, req: falcon.Request) -> ForwardedEventParameters:
        """Accept any parameter."""
        return ForwardedEventParameters.read(req.params)

    def answer(self, given: ForwardedEventParameters, **path: str) -> bytes:
        """Return an array."""
        exchange = self.service.exchange
        asked: dict[str, Value] = {
            "limit": given.limit,
            "offset": given.offset,
            "active": given.active,
            "closed": given.closed,
        }
        others: dict[str, list[str | int]] = {}
        for name, value in given.others:
            others.setdefault(name, []).append(value)

        def ask() -> bytes:
            found = exchange.client.get(f"{exchange.gamma.url}/events", _objects, {**asked, **others})
            return b"[" + b",".join(bytes(each) for each in found) + b"]"

        return exchange.fetch(given, "gamma", ask)


class Positions(ReadResource):
    """Open positions of a wallet."""

    def answer(self, given: PositionParameters, **path: str) -> bytes:
        """Return an array, largest position first."""
        return held(self.service.exchange, given.wallet.lower())


class ClosedPositions(ReadResource):
    """Closed positions of a wallet."""

    def answer(self, given: PositionParameters, **path: str) -> bytes:
        """Return an array."""
        exchange, wallet = self.service.exchange, given.wallet.lower()

        def ask() -> bytes:
            found = exchange.until_deadline(islice(exchange.data_api.closed_positions(wallet), MAX_POSITIONS))
            return msgspec.json.encode([_closed(each) for each in found])

        return exchange.fetch(("closed", wallet), "data_api", ask)


class MarketPositions(ReadResource):
    """Positions in a market."""

    def answer(self, given: MarketPositionParameters, **path: str) -> bytes:
        """Return a wallet's positions in the market; without a wallet, the largest holders."""
        exchange, market = self.service.exchange, self.service.markets.of(path["id"])
        if given.wallet is not None:
            return held(exchange, given.wallet.lower(), market)

        def ask() -> bytes:
            found = exchange.data_api.holders(market.market_id)
            return msgspec.json.encode([_holding(each, market) for each in found])

        return exchange.fetch(("holders", market.market_id), "data_api", ask)


def cost_of_source(given: MarketParameters) -> int:
    """Return the credits of a list: 2 if it is requested from the exchange, else 1."""
    return 1 if given.source == "local" else 2


def held(exchange: ExchangeProxy, wallet: str, market: MarketRef | None = None) -> bytes:
    """Return a wallet's open positions, in all markets or in one."""
    of = None if market is None else market.market_id

    def ask() -> bytes:
        found = exchange.until_deadline(islice(exchange.data_api.positions(wallet, market=of), MAX_POSITIONS))
        return msgspec.json.encode([_position(each) for each in found])

    return exchange.fetch(("positions", wallet, of), "data_api", ask)


def traded(exchange: ExchangeProxy, market: MarketRef, outcome: int | None, given: TradeParameters) -> bytes:
    """Return trades of an outcome (None: all): those of all takers, or all trades of one wallet."""
    places = {token: place for place, token in enumerate(market.token_ids) if outcome in {None, place}}
    wallet = given.wallet.lower() if given.wallet else None

    def ask() -> bytes:
        walk = exchange.data_api.trades(
            [market.market_id], given.from_, given.to, user=wallet, taker_only=wallet is None
        )
        found = (
            _trade(each, places[each.token_id])
            for each in exchange.until_deadline(walk)
            if each.token_id in places and (given.to is None or each.ts < given.to)
        )
        return msgspec.json.encode(list(islice(found, given.limit)))

    return exchange.fetch(("trades", market.market_id, outcome, given), "data_api", ask)


class ExchangeCursor(msgspec.Struct, frozen=True, array_like=True):
    """A position in the exchange's own list."""

    filter: bytes
    after: str


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
        try:
            filters["tag_id"] = str(exchange.client.get(f"{exchange.gamma.url}/tags/slug/{name}", _tag).get("id"))
        except NotFound:
            return [], None
    found: list[Listed] = []
    # The exchange filters only by open and closed, not by all of our states: keep reading until the page is full.
    for _ in exchange.until_deadline(repeat(None)):
        page = next(exchange.gamma.market_pages(after, limit=min(given.limit - len(found), PAGE_SIZE), **filters))
        found += [each for each in page.items if given.status is None or each.status() == given.status]
        after = page.next_cursor
        if after is None or len(found) >= given.limit:
            break
    return found, after


# --- Mapping of the exchange's records to ours


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


def _trade(sent: DataApiTrade, outcome: int) -> records.Trade:
    ts_ms = int(sent.ts.timestamp() * 1000)
    return records.Trade(
        id=str(trade_id(sent.token_id, sent.tx_hash, ts_ms, sent.side, sent.price, sent.size, sent.n)),
        market_id=sent.market,
        token_id=sent.token_id,
        outcome=outcome,
        price=sent.price / MICRO,
        size=sent.size / MICRO,
        value_usd=round(sent.price * sent.size / MICRO) / MICRO,
        side="BUY" if sent.side > 0 else "SELL",
        tx_hash=None if sent.tx_hash is None or sent.tx_hash.startswith(ASSIGNED) else sent.tx_hash,
        ts=ts_ms,
    )


def _position(sent: Sent) -> Position:
    return Position(
        wallet=sent.proxy_wallet.lower(),
        market_id=sent.condition_id.lower(),
        token_id=sent.asset,
        outcome=outcome_place(sent.outcome_index),
        outcome_name=sent.outcome or None,
        size=float(sent.size),
        avg_price=_float(sent.avg_price),
        cur_price=_float(sent.cur_price),
        initial_value_usd=_float(sent.initial_value),
        current_value_usd=_float(sent.current_value),
        cash_pnl_usd=_float(sent.cash_pnl),
        percent_pnl=_float(sent.percent_pnl),
        realized_pnl_usd=_float(sent.realized_pnl),
        percent_realized_pnl=_float(sent.percent_realized_pnl),
        total_bought=_float(sent.total_bought),
        redeemable=sent.redeemable,
        mergeable=sent.mergeable,
        opposite_outcome_name=sent.opposite_outcome or None,
        opposite_token_id=sent.opposite_asset or None,
        neg_risk=sent.negative_risk,
        title=sent.title or None,
        slug=sent.slug or None,
        event_slug=sent.event_slug or None,
        end_date=sent.end_date or None,
    )


def _closed(sent: SentClosed) -> ClosedPosition:
    return ClosedPosition(
        wallet=sent.proxy_wallet.lower(),
        market_id=sent.condition_id.lower(),
        token_id=sent.asset,
        outcome=outcome_place(sent.outcome_index),
        outcome_name=sent.outcome or None,
        avg_price=_float(sent.avg_price),
        cur_price=_float(sent.cur_price),
        total_bought=float(sent.total_bought),
        realized_pnl_usd=float(sent.realized_pnl),
        closed_at=None if sent.timestamp is None else int(sent.timestamp),
        opposite_outcome_name=sent.opposite_outcome or None,
        opposite_token_id=sent.opposite_asset or None,
        title=sent.title or None,
        slug=sent.slug or None,
        event_slug=sent.event_slug or None,
        end_date=sent.end_date or None,
    )


def _holding(sent: Holder, market: MarketRef) -> Holding:
    outcome = outcome_place(sent.outcome_index)
    known = outcome is not None and outcome < len(market.outcomes)
    return Holding(
        wallet=sent.proxy_wallet.lower(),
        market_id=market.market_id,
        token_id=sent.asset,
        outcome=outcome,
        outcome_name=market.outcomes[outcome] if outcome is not None and known else None,
        size=float(sent.amount),
    )


def _float(sent: str | float | None) -> float | None:
    return None if sent is None or sent == "" else float(sent)
