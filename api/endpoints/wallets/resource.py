"""Wallets: watching them, and what they did, hold and have earned."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from api.data import cursor
from api.endpoints.base.resource import Reading
from api.endpoints.keys.resource import Writing, body
from api.errors import Problem
from api.schemas.requests import EARLIEST, LATEST
from sql.queries import wallets as queries

if TYPE_CHECKING:
    import falcon
    import psycopg

    from api.endpoints.wallets.requests import Board, MarketsOf, OfWallet, TradesOf
    from api.schemas.requests import Parameters
    from api.server.middleware import Answer

MOST_WATCHED = 1000
ONCHAIN = timedelta(days=14)
AHEAD = timedelta(minutes=1)  # the chain's clock may be ahead of ours
ABOVE_ALL = 1 << 60  # no block has such a number
ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}\Z")


class WatchBody(Struct, frozen=True):
    """Which wallet."""

    address: Annotated[
        str,
        Meta(
            pattern="^0[xX][0-9a-fA-F]{40}$",
            description="The wallet's address; upper and lower case are alike",
            examples=["0x" + "5d" * 20],
        ),
    ]


def wallet(address: str) -> bytes:
    """Read an address as stored; a checksum in its capitals is not looked at."""
    if not ADDRESS.match(address):
        detail = "Expected 0x and 40 hexadecimal digits"
        raise Problem(
            "invalid_parameter",
            f"`address`: {detail[0].lower()}{detail[1:]}",
            errors=[{"name": "address", "detail": detail, "allowed": "^0x[0-9a-fA-F]{40}$"}],
        )
    return bytes.fromhex(address[2:])


def said(address: bytes) -> str:
    """Write an address as answers have it."""
    return f"0x{address.hex()}"


class Watch(Writing):
    """Begin to watch a wallet."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Watch it; again changes nothing."""
        self.admit(req)
        address = wallet(body(req, WatchBody).address)
        account = req.context.grant.key.account_id
        if self.write(lambda conn: _watch(conn, account, address)) is None:
            raise Problem(
                "invalid_parameter",
                f"{MOST_WATCHED:,} wallets can be watched at once",
                hint="DELETE /v1/wallets/{address}/watch ends watching one",
                errors=[{"name": "address", "detail": f"{MOST_WATCHED} are watched already"}],
            )
        self.say(resp, {"address": said(address), "watching": True})


def _watch(conn: psycopg.Connection[Any], account: int, address: bytes) -> bool | None:
    with conn.transaction():
        queries.hold_watching(conn)
        watched: bool | None = queries.watch(conn, account_id=account, wallet=address, most=MOST_WATCHED)
    return watched


class Unwatch(Writing):
    """Watch a wallet no more."""

    def on_delete(self, req: falcon.Request, resp: falcon.Response, address: str) -> None:
        """End watching it, if it was watched."""
        self.admit(req)
        which, account = wallet(address), req.context.grant.key.account_id
        self.write(lambda conn: queries.unwatch(conn, account_id=account, wallet=which))
        self.say(resp, {"address": said(which), "watching": False})


class OfAccount(Reading):
    """What depends on whose key it is asked with."""

    def on_get(self, req: falcon.Request, resp: Answer, **path: str) -> None:
        """Answer a question of somebody."""
        key = self.holder(req)
        assert key is not None
        super().on_get(req, resp, **path, account_id=str(key.account_id))


class Watched(OfAccount):
    """The wallets that an account watches."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Give them; those just changed as well, so from where they were written."""
        account = int(path["account_id"])
        with self.service.writes.connection() as conn:
            return self.found(queries.watched(conn, account_id=account))


class Filter(msgspec.Struct, frozen=True):
    """What a walk was asked for."""

    of: str
    address: str
    since: float | None
    until: float | None
    market_key: int | None


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a walk of trades stands: the last row shown, or an instant before which it begins."""

    filter: bytes
    ts: datetime
    block: int = -1
    log: int = -1
    maker: bool = False


class MarketPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a walk of outcomes stands: the last one shown."""

    filter: bytes
    ts: datetime = LATEST
    token_key: int = 0


P = TypeVar("P", Place, MarketPlace)


class Walked(OfAccount):
    """A list of a wallet's history, newest first, a page at a time."""

    def begun(self, given: OfWallet, start: P) -> P:
        """Give the place where this page begins."""
        if given.cursor is None:
            return start
        place = self.service.cursors.read(given.cursor, type(start))
        if place.filter != start.filter:
            raise cursor.invalid("It belongs to a list with another filter")
        return place

    def filter(self, given: OfWallet, address: str, market_key: int | None) -> bytes:
        """Give the digest of what was asked for, whichever page."""
        since, until = (None if each is None else each.timestamp() for each in (given.from_, given.to))
        return cursor.digest(Filter(self.endpoint.name, address, since, until, market_key))

    def market(self, given: OfWallet) -> int | None:
        """Give the key of the market that was asked for."""
        return None if given.market_id is None else self.service.markets.of(given.market_id).key

    def page(self, rows: list[tuple[Any, ...]], limit: int, place: P, **said: str) -> bytes:
        """Write a page: one row more than shown means that there is another page."""
        shown, tail = rows[:limit], ""
        if len(rows) > limit:
            tail = self.service.cursors.write(type(place)(place.filter, *shown[-1][:-1]))
        data = ",".join(row[-1] for row in shown)
        more = "".join(f',"{name}":{value}' for name, value in said.items())
        return (
            f'"data":[{data}],"count":{len(shown)}{more},'
            f'"next_cursor":"{tail}","has_more":{"true" if tail else "false"}}}'
        ).encode()


class Trades(Walked):
    """A wallet's trades."""

    def asked(self, given: TradesOf, address: str, since: datetime) -> tuple[Place, dict[str, Any]]:
        """Give where a page begins, and what is asked of the database."""
        key, which = self.market(given), wallet(address)
        latest = datetime.fromtimestamp(self.service.clock(), UTC) + AHEAD
        start = Place(self.filter(given, said(which), key), min(given.to or latest, latest))
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
        # Fills are found by wallet and instant: what lies outside the time in which it traded the market is not read.
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


class Activity(Trades):
    """What was kept of a wallet."""

    def answer(self, given: TradesOf, **path: str) -> bytes:
        """Give a page of it."""
        place, asked = self.asked(given, path["address"], EARLIEST)
        account = int(path["account_id"])
        watching, kept = self.read(queries.watching, account_id=account, wallet=asked["wallet"]) or (False, False)
        rows = self.rows(queries.activity, account_id=account, **asked) if kept else []
        begin = f'{{"address":"{said(asked["wallet"])}","watching":{"true" if watching else "false"},'
        return begin.encode() + self.page(rows, given.limit, place)


class Summary(OfAccount):
    """A wallet in a few numbers."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Give them."""
        return self.found(self.read(account_id=int(path["account_id"]), wallet=wallet(path["address"])))


class WholeOfWallet(Reading):
    """What is the same for whoever asks, in one piece."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Give it."""
        return self.found(self.read(wallet=wallet(path["address"])))


class Onchain(Trades):
    """Fills of the last days."""

    def answer(self, given: TradesOf, **path: str) -> bytes:
        """Give a page of them."""
        since = datetime.fromtimestamp(self.service.clock(), UTC) - ONCHAIN
        place, asked = self.asked(given, path["address"], since)
        begins_ms = int(max(given.from_ or since, since).timestamp() * 1000)
        first, last = self.read(queries.onchain_span, **asked)
        rows: list[tuple[Any, ...]] = []
        if first is not None:
            del asked["since"]
            rows = self.rows(queries.onchain, from_ts=first, to_ts=last, **asked)
        begin = f'{{"address":"{said(asked["wallet"])}",'.encode()
        return begin + self.page(rows, given.limit, place, since=str(begins_ms))


class Markets(Walked):
    """The outcomes that a wallet traded."""

    def answer(self, given: MarketsOf, **path: str) -> bytes:
        """Give a page of them."""
        which, key = wallet(path["address"]), self.market(given)
        place = self.begun(given, MarketPlace(self.filter(given, said(which), key)))
        rows = self.rows(
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
        return f'{{"address":"{said(which)}",'.encode() + self.page(rows, given.limit, place, note=note)


class Leaderboard(Reading):
    """The head of a board."""

    def answer(self, given: Board, **path: str) -> bytes:
        """Give it."""
        return self.found(self.read(span=given.window, by=given.by, limit=given.limit))
