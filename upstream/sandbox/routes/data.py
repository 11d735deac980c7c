"""The Data API, v1 (camelCase, offsets) and v2 (snake_case, cursors): trades, activity and positions."""

from __future__ import annotations

import base64
import re
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from upstream.sandbox.common.answers import RefusedError, route
from upstream.sandbox.common.book import opposite
from upstream.sandbox.exchange.catalogue import Gamma, SandboxMarket, words
from upstream.sandbox.routes.paging import flag, several, whole
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.routing import Route

    from upstream.sandbox.exchange.exchange import SandboxExchange
    from upstream.sandbox.exchange.portfolio import Portfolios, SandboxPosition
    from upstream.sandbox.exchange.trades import SandboxTrade
    from upstream.sandbox.simulation.past import SimulatedPast

MAX_OFFSET = 10_000
MAX_TRADES, MAX_POSITIONS, MAX_V2_ROWS = 10_000, 500, 1000
MAX_CONDITIONS = MAX_HOLDERS = 20
SORTS = {
    "CURRENT": "currentValue",
    "INITIAL": "initialValue",
    "TOKENS": "size",
    "CASHPNL": "cashPnl",
    "PERCENTPNL": "percentPnl",
    "TITLE": "title",
    "PRICE": "curPrice",
}
CLOSED_SORTS = {
    "REALIZEDPNL": "realizedPnl",
    "TITLE": "title",
    "PRICE": "curPrice",
    "AVGPRICE": "avgPrice",
    "TIMESTAMP": "timestamp",
}

Row: TypeAlias = dict[str, Any]
Keyed: TypeAlias = tuple[tuple[int, int], Row]  # the key descends from row to row, and never changes


class DataApi:
    """Endpoints of the Data API, from the exchange's recent trades."""

    def __init__(self, exchange: SandboxExchange, portfolios: Portfolios) -> None:
        self._exchange = exchange
        self._catalogue = exchange.catalogue
        self.portfolios = portfolios
        self.past: SimulatedPast | None = None

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            route(
                "/trades", lambda request: self._v1_page(request, self._trade_rows(request.query_params), MAX_TRADES)
            ),
            route(
                "/activity",
                lambda request: self._v1_page(request, self._activity(request.query_params), MAX_POSITIONS),
            ),
            route("/positions", self.positions),
            route("/closed-positions", self.closed_positions),
            route("/holders", self.holders),
            route("/value", self.value),
            route("/v2/trades", lambda request: _v2_page(request, self._trade_rows(request.query_params))),
            route("/v2/activity", lambda request: _v2_page(request, self._activity(request.query_params))),
            route("/v2/positions", lambda request: _v2_page(request, self._v2_positions(request.query_params))),
        ]

    # --- Trades ---

    def _trade_rows(self, query: QueryParams) -> Iterator[Keyed]:
        """Return rows newest first; takers only, unless `takerOnly=false` includes makers."""
        conditions = several(query, "market") + several(query, "condition_id")
        if "condition_id" in query and len(conditions) > MAX_CONDITIONS:
            raise RefusedError(400, {"error": f"condition_id takes at most {MAX_CONDITIONS} ids"})
        for event_id in several(query, "eventId") + several(query, "event_id"):
            conditions += [market.condition_id for market in self._catalogue.members_of(event_id)] or ["none"]
        taker_only = flag(query, "takerOnly" if "takerOnly" in query else "taker_only") is not False
        return self._chosen(conditions or None, query, taker_only=taker_only)

    def _chosen(self, conditions: list[str] | None, query: QueryParams, *, taker_only: bool) -> Iterator[Keyed]:
        user, side = query.get("user", "").lower(), query.get("side", "").upper()
        start, end = whole(query, "start", 0), whole(query, "end", 1 << 40)
        least = _least(query)
        past = self.past
        now = past is None or end * 1000 >= past.end_ms
        trades = self._exchange.trades.newest_first(conditions) if now else iter(())
        if past is not None:
            trades = chain(trades, past.newest_first(conditions, start, end, user))
        for trade in trades:
            at = trade.ts_ms // 1000
            if at > end or at < start or (user and user not in (trade.taker.lower(), trade.maker.lower())):
                continue
            sides = (trade,) if taker_only or not trade.maker else (trade, self._of_maker(trade))
            for part, row in enumerate(sides):
                if (not user or row.taker.lower() == user) and (not side or row.side == side) and least(row):
                    yield (trade.n, -part), self._trade_row(row)

    def _of_maker(self, trade: SandboxTrade) -> SandboxTrade:
        """Return a trade from its maker's side, as on the chain: a minted or merged pair has two tokens."""
        if not trade.form:
            return msgspec.structs.replace(trade, taker=trade.maker, side=opposite(trade.side))
        outcome = 1 - trade.outcome
        token = self._found(trade.token)[0].tokens[outcome]
        return msgspec.structs.replace(trade, taker=trade.maker, token=token, outcome=outcome, price=ONE - trade.price)

    def _trade_row(self, trade: SandboxTrade) -> Row:
        at = self._catalogue.find(trade.token)
        return {
            "proxyWallet": trade.taker,
            "side": trade.side,
            "asset": trade.token,
            "conditionId": trade.condition_id,
            "size": trade.size / ONE,
            "price": trade.price / ONE,
            "timestamp": trade.ts_ms // 1000,
            **_about(at[0] if at else None, trade.outcome),
            **_person(trade.taker),
            "transactionHash": trade.tx,
        }

    def _activity(self, query: QueryParams) -> Iterator[Keyed]:
        if not query.get("user"):
            raise RefusedError(400, {"error": "required query param 'user' not provided"})
        kinds = {kind.upper() for kind in several(query, "type")}
        if kinds and "TRADE" not in kinds:
            return iter(())
        conditions = several(query, "market") + several(query, "condition_id")
        rows = self._chosen(conditions or None, query, taker_only=False)
        return ((key, {**row, "type": "TRADE", "usdcSize": round(row["size"] * row["price"], 6)}) for key, row in rows)

    # --- Positions ---

    def positions(self, request: Request) -> list[Row]:
        """Return a wallet's open positions."""
        query = request.query_params
        least = float(query.get("sizeThreshold") or 1)
        rows = [
            self._position_row(position, query["user"])
            for position in self._held(query)
            if position.size / ONE >= least and not self._redeemed(position)
        ]
        if (redeemable := flag(query, "redeemable")) is not None:
            rows = [row for row in rows if row["redeemable"] is redeemable]
        return _sorted_page(request, rows, SORTS, "size")

    def closed_positions(self, request: Request) -> list[Row]:
        """Return sold positions, and won ones that were redeemed; lost ones stay among the positions."""
        query = request.query_params
        rows = [
            self._closed_row(position, query["user"])
            for position in self._held(query)
            if position.bought and (not position.size or self._redeemed(position))
        ]
        return _sorted_page(request, rows, CLOSED_SORTS, "realizedPnl")

    def holders(self, request: Request) -> list[Row]:
        """Return the largest holders of each outcome."""
        query = request.query_params
        conditions = several(query, "market")
        if not conditions:
            raise RefusedError(400, {"error": "required query param 'market' not provided"})
        limit, least = whole(query, "limit", MAX_HOLDERS, MAX_HOLDERS), float(query.get("minBalance") or 1) * ONE
        markets = [market for market in map(self._catalogue.condition, conditions) if market is not None]
        return [
            {
                "token": token,
                "holders": [
                    {"proxyWallet": wallet, "amount": size / ONE, "asset": token, "outcomeIndex": outcome}
                    | _person(wallet)
                    for wallet, size in self.portfolios.holders(token)[:limit]
                    if size >= least
                ],
            }
            for market in markets
            for outcome, token in enumerate(market.tokens)
        ]

    def value(self, request: Request) -> list[Row]:
        """Return the value of a wallet's positions."""
        query = request.query_params
        held = self._held(query)
        return [
            {
                "user": query["user"],
                "value": round(sum(position.size * self._price(position) / ONE for position in held), 4),
            }
        ]

    def _held(self, query: QueryParams) -> list[SandboxPosition]:
        user = query.get("user", "")
        if not user:
            raise RefusedError(400, {"error": "required query param 'user' not provided"})
        if not re.fullmatch(r"0x[0-9a-fA-F]{40}", user):
            raise RefusedError(400, {"error": "invalid user address"})
        conditions = set(several(query, "market") + several(query, "condition_id"))
        held = [position for position in self.portfolios.of(user) if self._catalogue.find(position.token)]
        return [
            position for position in held if not conditions or self._found(position.token)[0].condition_id in conditions
        ]

    def _found(self, token: str) -> tuple[SandboxMarket, int]:
        found = self._catalogue.find(token)
        assert found is not None
        return found

    def _redeemed(self, position: SandboxPosition) -> bool:
        return self._found(position.token)[0].closed and self._price(position) == 1

    def _price(self, position: SandboxPosition) -> float:
        market, outcome = self._found(position.token)
        if market.closed:
            prices = words(market.gamma.get("outcomePrices"))
            return float(prices[outcome]) if outcome < len(prices) else 0.0
        return (market.last_price[outcome] or 0) / ONE

    def _position_row(self, position: SandboxPosition, wallet: str) -> Row:
        market, outcome = self._found(position.token)
        price, size = self._price(position), position.size / ONE
        initial, current = position.cost / ONE, price * size
        event: Gamma = next(iter(market.gamma.get("events") or ()), {})
        return {
            "proxyWallet": wallet.lower(),
            "asset": position.token,
            "conditionId": market.condition_id,
            "size": size,
            "avgPrice": round(position.average, 6),
            "initialValue": round(initial, 4),
            "currentValue": round(current, 4),
            "cashPnl": round(current - initial, 4),
            "percentPnl": round((current - initial) / initial * 100, 4) if initial else 0,
            "totalBought": position.bought / ONE,
            "realizedPnl": round(position.realized / ONE, 4),
            "percentRealizedPnl": round(position.realized / position.spent * 100, 4) if position.spent else 0,
            "curPrice": price,
            "redeemable": market.closed,
            "mergeable": False,
            **self._described(market, outcome),
            "eventId": str(event.get("id", "")),
            "negativeRisk": market.neg_risk,
        }

    def _closed_row(self, position: SandboxPosition, wallet: str) -> Row:
        market, outcome = self._found(position.token)
        won = position.size - position.cost if position.size else 0
        return {
            "proxyWallet": wallet.lower(),
            "asset": position.token,
            "conditionId": market.condition_id,
            "avgPrice": round(position.average, 6),
            "totalBought": position.bought / ONE,
            "realizedPnl": round((position.realized + won) / ONE, 4),
            "curPrice": self._price(position),
            **self._described(market, outcome),
            "endDate": market.gamma.get("endDate", ""),
            "timestamp": position.ts_ms // 1000,
        }

    def _described(self, market: SandboxMarket, outcome: int) -> Row:
        two = len(market.tokens) == 2
        return _about(market, outcome) | {
            "oppositeOutcome": market.outcomes[1 - outcome] if two else "",
            "oppositeAsset": market.tokens[1 - outcome] if two else "",
            "endDate": str(market.gamma.get("endDate", ""))[:10],
        }

    def _v2_positions(self, query: QueryParams) -> Iterator[Keyed]:
        for at, position in enumerate(self._held(query)):
            market, outcome = self._found(position.token)
            price, size = self._price(position), position.size / ONE
            yield (
                (-at, 0),
                {
                    "proxyWallet": query["user"].lower(),
                    "tokenId": position.token,
                    "conditionId": market.condition_id,
                    "currentSize": size,
                    "avgPrice": round(position.average, 6),
                    "entryCostUsdc": position.cost / ONE,
                    "entryFeesUsdc": 0,
                    "totalCostUsdc": position.spent / ONE,
                    "currentPrice": price,
                    "currentValue": round(price * size, 4),
                    "realizedPnl": round(position.realized / ONE, 6),
                    "unrealizedPnl": round(price * size - position.cost / ONE, 6),
                    "status": _status(market, size, price),
                    **_about(market, outcome),
                },
            )

    # --- Pages ---

    def _v1_page(self, request: Request, rows: Iterator[Keyed], most: int) -> list[Row]:
        limit, start = whole(request.query_params, "limit", 100, most), _offset(request)
        return [row for _, row in islice(rows, start, start + limit)]


def _v2_page(request: Request, rows: Iterator[Keyed]) -> dict[str, Any]:
    """Return the page after a cursor, which names the last row, so that new rows do not shift it."""
    limit = whole(request.query_params, "limit", 100, MAX_V2_ROWS)
    cursor = None if getattr(request.state, "repeat", False) else request.query_params.get("cursor")
    if cursor:
        last = _read_cursor(cursor)
        rows = ((key, row) for key, row in rows if key < last)
    page = list(islice(rows, limit + 1))
    more = len(page) > limit
    following = _write_cursor(page[limit - 1][0]) if more else None
    return {
        "data": [_snake(row) for _, row in page[:limit]],
        "pagination": {"has_more": more, "next_cursor": following},
    }


def _write_cursor(key: tuple[int, int]) -> str:
    return base64.urlsafe_b64encode(f"{key[0]}.{key[1]}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[int, int]:
    try:
        n, part = base64.urlsafe_b64decode(cursor).decode().split(".")
        return int(n), int(part)
    except ValueError as error:
        raise RefusedError(400, {"error": "invalid cursor"}) from error


def _snake(row: Row) -> Row:
    """Return a row in v2's format: snake_case, and `token_id` for `asset`."""
    return {_snake_name(name): value for name, value in row.items()}


@cache
def _snake_name(name: str) -> str:
    return "token_id" if name == "asset" else re.sub(r"(?=[A-Z])", "_", name).lower()


def _offset(request: Request) -> int:
    offset = 0 if getattr(request.state, "repeat", False) else whole(request.query_params, "offset", 0)
    if offset > MAX_OFFSET:
        raise RefusedError(400, {"error": f"max historical activity offset of {MAX_OFFSET} exceeded"})
    return offset


def _sorted_page(request: Request, rows: list[Row], sorts: dict[str, str], default: str) -> list[Row]:
    query = request.query_params
    field = sorts.get(query.get("sortBy", "").upper(), default)
    rows.sort(key=lambda row: row[field], reverse=query.get("sortDirection", "DESC").upper() != "ASC")
    start = _offset(request)
    return rows[start : start + whole(query, "limit", 100, MAX_POSITIONS)]


def _least(query: QueryParams) -> Callable[[SandboxTrade], bool]:
    """Return a predicate for `filterType` and `filterAmount`: the least size, in dollars or in shares."""
    kind = (query.get("filterType") or query.get("filter_type") or "").upper()
    amount = query.get("filterAmount") or query.get("filter_amount")
    if not kind or not amount:
        return lambda _trade: True
    least = float(amount) * ONE
    if kind == "CASH":
        return lambda trade: trade.price * trade.size / ONE >= least
    return lambda trade: trade.size >= least


def _status(market: SandboxMarket, size: float, price: float) -> str:
    if not size:
        return "CLOSED"
    if not market.closed:
        return "OPEN"
    return "REDEEMABLE" if price > 0 else "REDEEMABLE_LOST"


def _about(market: SandboxMarket | None, outcome: int) -> Row:
    gamma: Gamma = market.gamma if market else {}
    event: Gamma = next(iter(gamma.get("events") or ()), {})
    return {
        "title": gamma.get("question", ""),
        "slug": gamma.get("slug", ""),
        "icon": gamma.get("icon", ""),
        "eventSlug": event.get("slug", ""),
        "outcome": market.outcomes[outcome] if market else "",
        "outcomeIndex": outcome,
    }


def _person(wallet: str) -> Row:
    return {
        "name": "",
        "pseudonym": f"Wallet-{wallet[2:8]}" if wallet else "",
        "bio": "",
        "profileImage": "",
        "profileImageOptimized": "",
    }
