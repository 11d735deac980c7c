"""Resources that forward requests to the exchange."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from api.endpoints.base.resource import ReadResource
from api.endpoints.exchange.records import ClosedPosition, Holding, Position
from api.endpoints.exchange.requests import ForwardedEventParameters
from upstream.polymarket.fields import outcome_place

if TYPE_CHECKING:
    import falcon

    from api.data.lookup import MarketRef
    from api.data.proxy import ExchangeProxy
    from api.endpoints.exchange.requests import MarketPositionParameters, PositionParameters
    from upstream.polymarket.data_api.client import DataApiClosedPosition as SentClosed
    from upstream.polymarket.data_api.client import DataApiPosition as Sent
    from upstream.polymarket.data_api.client import Holder
    from upstream.transport.http import Value

MAX_POSITIONS = 2000
PAGE_SIZE = 100  # the exchange's page size limit

_objects = msgspec.json.Decoder(list[msgspec.Raw])


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
        exchange, market = self.service.exchange, self.service.markets.with_wallets(path["id"])
        if given.wallet is not None:
            return held(exchange, given.wallet.lower(), market)

        def ask() -> bytes:
            found = exchange.data_api.holders(market.market_id)
            return msgspec.json.encode([_holding(each, market) for each in found])

        return exchange.fetch(("holders", market.market_id), "data_api", ask)


def held(exchange: ExchangeProxy, wallet: str, market: MarketRef | None = None) -> bytes:
    """Return a wallet's open positions, in all markets or in one."""
    of = None if market is None else market.market_id

    def ask() -> bytes:
        found = exchange.until_deadline(islice(exchange.data_api.positions(wallet, market=of), MAX_POSITIONS))
        return msgspec.json.encode([_position(each) for each in found])

    return exchange.fetch(("positions", wallet, of), "data_api", ask)


# --- Mapping of the exchange's records to ours


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
