"""Resources of wallets: watching, activity, positions, profit and the leaderboard."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from api.data import cursor
from api.endpoints.base.resource import ReadResource
from api.endpoints.keys.resource import WriteResource, body
from api.errors import Problem
from api.schemas.requests import EARLIEST, LATEST
from sql.queries import wallets as queries

if TYPE_CHECKING:
    import falcon
    import psycopg

    from api.endpoints.wallets.requests import (
        LeaderboardParameters,
        WalletHistoryParameters,
        WalletMarketParameters,
        WalletTradeParameters,
    )
    from api.schemas.requests import Parameters
    from api.server.middleware import ApiResponse

MAX_WATCHED = 1000
ONCHAIN = timedelta(days=14)
AHEAD = timedelta(minutes=1)  # the chain's clock may be ahead of ours
ABOVE_ALL = 1 << 60  # greater than any block number
ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}\Z")


class WatchBody(Struct, frozen=True):
    """The wallet to watch."""

    address: Annotated[
        str,
        Meta(
            pattern="^0[xX][0-9a-fA-F]{40}$",
            description="The wallet's address; case-insensitive",
            examples=["0x" + "5d" * 20],
        ),
    ]


def wallet(address: str) -> bytes:
    """Parse an address to bytes; a checksum in its letter case is ignored."""
    if not ADDRESS.match(address):
        detail = "Expected 0x and 40 hexadecimal digits"
        raise Problem(
            "invalid_parameter",
            f"`address`: {detail[0].lower()}{detail[1:]}",
            errors=[{"name": "address", "detail": detail, "allowed": "^0x[0-9a-fA-F]{40}$"}],
        )
    return bytes.fromhex(address[2:])


def formatted(address: bytes) -> str:
    """Format an address for a response."""
    return f"0x{address.hex()}"


class Watch(WriteResource):
    """Start watching a wallet."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Watch the wallet; idempotent."""
        self.admit(req)
        address = wallet(body(req, WatchBody).address)
        account = req.context.grant.key.account_id
        if self.write(lambda conn: _watch(conn, account, address)) is None:
            raise Problem(
                "invalid_parameter",
                f"At most {MAX_WATCHED:,} wallets can be watched at once",
                hint="DELETE /v1/wallets/{address}/watch stops watching a wallet",
                errors=[{"name": "address", "detail": f"{MAX_WATCHED} are already watched"}],
            )
        self.respond(resp, {"address": formatted(address), "watching": True})


def _watch(conn: psycopg.Connection[Any], account: int, address: bytes) -> bool | None:
    with conn.transaction():
        queries.hold_watching(conn)
        watched: bool | None = queries.watch(conn, account_id=account, wallet=address, most=MAX_WATCHED)
    return watched


class Unwatch(WriteResource):
    """Stop watching a wallet."""

    def on_delete(self, req: falcon.Request, resp: falcon.Response, address: str) -> None:
        """Stop watching the wallet, if it was watched."""
        self.admit(req)
        which, account = wallet(address), req.context.grant.key.account_id
        self.write(lambda conn: queries.unwatch(conn, account_id=account, wallet=which))
        self.respond(resp, {"address": formatted(which), "watching": False})


class AccountResource(ReadResource):
    """An endpoint whose response depends on the key's account."""

    def on_get(self, req: falcon.Request, resp: ApiResponse, **path: str) -> None:
        """Answer a GET request for the key's account."""
        given = self.admit(req)
        self.reply(req, resp, given, {**path, "account_id": str(req.context.grant.key.account_id)})


class WatchedResource(AccountResource):
    """The wallets that an account watches."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Return the wallets, read from the primary so that recent changes are included."""
        account = int(path["account_id"])
        with self.service.writes.connection() as conn:
            return self.required(queries.watched(conn, account_id=account))


class HistoryFilter(msgspec.Struct, frozen=True):
    """The filter of a paginated wallet history."""

    of: str
    address: str
    since: float | None
    until: float | None
    market_key: int | None


class WalletTradeCursor(msgspec.Struct, frozen=True, array_like=True):
    """A position in a list of trades: the last row returned, or the time before which the list begins."""

    filter: bytes
    ts: datetime
    block: int = -1
    log: int = -1
    maker: bool = False


class WalletMarketCursor(msgspec.Struct, frozen=True, array_like=True):
    """A position in a list of outcomes: the last one returned."""

    filter: bytes
    ts: datetime = LATEST
    token_key: int = 0


P = TypeVar("P", WalletTradeCursor, WalletMarketCursor)


class PaginatedHistory(AccountResource):
    """A paginated list of a wallet's history, newest first."""

    def begun(self, given: WalletHistoryParameters, start: P) -> P:
        """Return the position where this page begins."""
        if given.cursor is None:
            return start
        place = self.service.cursors.read(given.cursor, type(start))
        if place.filter != start.filter:
            raise cursor.invalid("It belongs to a list with a different filter")
        return place

    def filter(self, given: WalletHistoryParameters, address: str, market_key: int | None) -> bytes:
        """Return the digest of the request's filter, which is the same for all pages."""
        since, until = (None if each is None else each.timestamp() for each in (given.from_, given.to))
        return cursor.digest(HistoryFilter(self.endpoint.name, address, since, until, market_key))

    def market(self, given: WalletHistoryParameters) -> int | None:
        """Return the key of the requested market, or None."""
        return None if given.market_id is None else self.service.markets.of(given.market_id).key

    def page(self, rows: list[tuple[Any, ...]], limit: int, place: P, **formatted: str) -> bytes:
        """Encode a page; one row beyond the limit means that there is another page."""
        shown, tail = rows[:limit], ""
        if len(rows) > limit:
            tail = self.service.cursors.write(type(place)(place.filter, *shown[-1][:-1]))
        data = ",".join(row[-1] for row in shown)
        more = "".join(f',"{name}":{value}' for name, value in formatted.items())
        return (
            f'"data":[{data}],"count":{len(shown)}{more},'
            f'"next_cursor":"{tail}","has_more":{"true" if tail else "false"}}}'
        ).encode()


class Trades(PaginatedHistory):
    """A wallet's trades."""

    def asked(
        self, given: WalletTradeParameters, address: str, since: datetime
    ) -> tuple[WalletTradeCursor, dict[str, Any]]:
        """Return the position where the page begins, and the query arguments."""
        key, which = self.market(given), wallet(address)
        latest = datetime.fromtimestamp(self.service.clock(), UTC) + AHEAD
        start = WalletTradeCursor(self.filter(given, formatted(which), key), min(given.to or latest, latest))
        place = self.begun(given, start)
        asked: dict[str, Any] = {
            "wallet": which,
            "since": max(given.from_ or since, since),
            "token_keys": None,
            "before_ts": place.ts,
            "before_block": place.block,
            "before_log": place.log,
            "before_maker": place.maker,
            "limit": given.limit + 1,
        }
        if key is not None:
            self._narrow(asked, key)
        return place, asked

    def _narrow(self, asked: dict[str, Any], market_key: int) -> None:
        # Fills are indexed by wallet and time: read only the time range in which the wallet traded the market.
        which = asked["wallet"]
        keys, first, last, known_until = self.read(queries.traded, wallet=which, market_key=market_key)
        asked["token_keys"] = keys
        if known_until is None or known_until <= asked["since"]:
            return
        if not self.read(queries.traded_since, wallet=which, token_keys=keys, since=known_until):
            if last is None:
                asked["token_keys"] = []
            elif last < asked["before_ts"]:
                asked.update(before_ts=last, before_block=ABOVE_ALL, before_log=0, before_maker=False)
        asked["since"] = max(asked["since"], min(first or known_until, known_until))


class ActivityResource(Trades):
    """Recorded activity of a watched wallet."""

    def answer(self, given: WalletTradeParameters, **path: str) -> bytes:
        """Return a page of the activity."""
        place, asked = self.asked(given, path["address"], EARLIEST)
        account = int(path["account_id"])
        # The primary: the client may have just begun to watch it.
        about = {"account_id": account, "wallet": asked["wallet"]}
        watching, kept = self.service.writes.read(lambda conn: queries.watching(conn, **about)) or (False, False)
        rows = self.read(queries.activity, account_id=account, **asked) if kept else []
        begin = f'{{"address":"{formatted(asked["wallet"])}","watching":{"true" if watching else "false"},'
        return begin.encode() + self.page(rows, given.limit, place)


class SummaryResource(AccountResource):
    """Totals of a wallet."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Return the totals."""
        asked = {"account_id": int(path["account_id"]), "wallet": wallet(path["address"])}
        # The primary: the client may have just begun to watch it.
        return self.required(self.service.writes.read(lambda conn: queries.summary(conn, **asked)))


class WalletRow(ReadResource):
    """An unpaginated row of a wallet that does not depend on the account."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Return the row."""
        return self.required(self.read(wallet=wallet(path["address"])))


class OnchainResource(Trades):
    """Fills of the last 14 days."""

    def answer(self, given: WalletTradeParameters, **path: str) -> bytes:
        """Return a page."""
        since = datetime.fromtimestamp(self.service.clock(), UTC) - ONCHAIN
        place, asked = self.asked(given, path["address"], since)
        begins_ms = int(max(given.from_ or since, since).timestamp() * 1000)
        first, last = self.read(queries.onchain_span, **asked)
        rows: list[tuple[Any, ...]] = []
        if first is not None:
            del asked["since"]
            rows = self.read(queries.onchain, from_ts=first, to_ts=last, **asked)
        begin = f'{{"address":"{formatted(asked["wallet"])}",'.encode()
        return begin + self.page(rows, given.limit, place, since=str(begins_ms))


class Markets(PaginatedHistory):
    """The outcomes that a wallet traded."""

    def answer(self, given: WalletMarketParameters, **path: str) -> bytes:
        """Return a page."""
        which, key = wallet(path["address"]), self.market(given)
        place = self.begun(given, WalletMarketCursor(self.filter(given, formatted(which), key)))
        rows = self.read(
            queries.markets,
            wallet=which,
            since=given.from_ or EARLIEST,
            until=given.to or LATEST,
            market_key=key,
            before_ts=place.ts,
            before_key=place.token_key,
            limit=given.limit + 1,
        )
        note = msgspec.json.encode(self.read(queries.note)).decode()
        return f'{{"address":"{formatted(which)}",'.encode() + self.page(rows, given.limit, place, note=note)


class LeaderboardResource(ReadResource):
    """The top of a leaderboard."""

    def answer(self, given: LeaderboardParameters, **path: str) -> bytes:
        """Return the row."""
        return self.required(self.read(span=given.window, by=given.by, limit=given.limit))
