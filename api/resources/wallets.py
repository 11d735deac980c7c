"""Wallets: watching them, and what they did, hold and have earned."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from api.errors import Problem
from api.resource import Reading
from api.resources.accounts import Writing, body
from sql.queries import wallets as queries

if TYPE_CHECKING:
    import falcon
    import psycopg

    from api.middleware import Answer
    from api.parameters import Parameters
    from api.parameters_wallets import Board, LatestOf, MarketsOf

MOST_WATCHED = 1000
ONCHAIN = timedelta(days=14)
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


class Activity(OfAccount):
    """What was kept of a wallet."""

    def answer(self, given: LatestOf, **path: str) -> bytes:
        """Give the newest of it."""
        which = wallet(path["address"])
        return self.found(self.read(account_id=int(path["account_id"]), wallet=which, limit=given.limit))


class Summary(OfAccount):
    """A wallet in a few numbers."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Give them."""
        return self.found(self.read(account_id=int(path["account_id"]), wallet=wallet(path["address"])))


class OfWallet(Reading):
    """What is the same for whoever asks."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Give it."""
        return self.found(self.read(wallet=wallet(path["address"]), **self.more(given)))

    def more(self, given: Any) -> dict[str, Any]:
        """Say what else the query takes."""
        return {}


class Newest(OfWallet):
    """The newest of something."""

    def more(self, given: LatestOf | MarketsOf) -> dict[str, Any]:
        """Take a limit."""
        return {"limit": given.limit}


class Onchain(Reading):
    """Fills of the last days."""

    def answer(self, given: LatestOf, **path: str) -> bytes:
        """Give the newest of them."""
        which, since = wallet(path["address"]), datetime.fromtimestamp(self.service.clock(), UTC) - ONCHAIN
        asked: dict[str, Any] = {"wallet": which, "since": since, "limit": given.limit}
        first, last = self.read(queries.onchain_span, **asked)
        return self.found(self.read(**asked, from_ts=first or since, to_ts=last or since))


class Leaderboard(Reading):
    """The head of a board."""

    def answer(self, given: Board, **path: str) -> bytes:
        """Give it."""
        return self.found(self.read(span=given.window, by=given.by, limit=given.limit))
