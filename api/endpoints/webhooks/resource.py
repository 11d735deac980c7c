"""Webhooks: made, changed, tried, and what became of each delivery. They are delivered elsewhere."""

from __future__ import annotations

import base64
import re
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import falcon
import msgspec
from msgspec import UNSET, Struct

from api.endpoints.keys.resource import Writing, body, invalid
from api.endpoints.wallets.resource import OfAccount
from api.endpoints.webhooks.requests import RotationBody, WebhookBody, WebhookChanges
from api.errors import Problem
from sql.database import micro
from sql.queries import webhooks as queries
from upstream.transport import addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from api.endpoints.base.resource import Reading
    from api.endpoints.webhooks.requests import DeliveriesOf, PageOf
    from api.metering.key import Key

ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
MOST_WALLETS = 5000  # named by all webhooks of an account, as on the stream
TEST = "webhook.test"
MOST_TESTS = 100  # waiting, of a webhook
OFF = "The webhook is disabled"
ABOVE_ALL = 2**62
COLUMNS = ("url", "events", "market_ids", "wallets", "min_usd")


class Place(Struct, frozen=True, array_like=True):
    """Where a walk of a list stands; the list is named, so that a cursor is of no use for another."""

    of: str
    number: int


def identity(text: str, what: str = "webhook") -> UUID:
    """Read an id; there is nothing by any other text."""
    if not ID.match(text):
        raise Problem("not_found", f"There is no such {what}", hint="Its `id` is 36 characters long, in lower case")
    return UUID(text)


def new_secret() -> str:
    """Make a secret: 256 random bits, as Standard Webhooks writes them."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


class Owned(Writing):
    """What an account does to its own webhooks."""

    def wish(self, req: falcon.Request) -> Key:
        """Admit the request, and tell whose it is."""
        self.admit(req)
        key: Key = req.context.grant.key
        return key

    def shown(self, conn: Any, key: Key, webhook_id: UUID) -> dict[str, Any]:
        """Give the webhook as it is now."""
        text = queries.record(conn, account_id=key.account_id, webhook_id=webhook_id)
        if text is None:
            raise Problem("not_found", "There is no such webhook", hint="GET /v1/webhooks lists yours")
        record: dict[str, Any] = msgspec.json.decode(text)
        return record

    def columns(self, asked: WebhookBody | WebhookChanges) -> dict[str, Any]:
        """Give what was said as it is stored; what was left out is left out."""
        said = {name: value for name, value in msgspec.structs.asdict(asked).items() if value is not UNSET}
        readers: dict[str, Callable[[Any], Any]] = {
            "url": self.checked_url,
            "events": lambda given: list(dict.fromkeys(given)),
            "markets": self.market_ids,
            "wallets": _wallets,
            "min_usd": lambda given: None if given is None else micro(given),
        }
        names = {"markets": "market_ids"}
        return {names.get(name, name): read(said[name]) for name, read in readers.items() if name in said}

    def checked_url(self, url: str) -> str:
        """Refuse what nobody is to be sent to; each connection is judged anew."""
        try:
            read = addresses.parse(url)
            port = read.port or addresses.PORTS[read.scheme]
            addresses.checked(read.raw_host.decode(), port, self.service.webhook_networks)
        except addresses.Forbidden as refusal:
            raise invalid("url", str(refusal)) from None
        except OSError:  # no such name, for now: that is found out when it is to be delivered to
            pass
        return url

    def market_ids(self, names: Sequence[str] | None) -> list[str] | None:
        """Give the condition ids of markets."""
        if names is None:
            return None
        try:
            return list(dict.fromkeys(self.service.markets.of(name).market_id for name in names))
        except Problem as refusal:
            if refusal.problem != "not_found":
                raise
            raise invalid("markets", "there is no such market", hint=refusal.hint) from None

    def make_room(self, conn: Any, key: Key, wallets: Sequence[bytes] | None, webhook_id: UUID | None = None) -> None:
        """Hold the account to its tier. Its changes take turns from here on."""
        queries.hold_account(conn, account_id=key.account_id)
        others, named, most = queries.room(conn, account_id=key.account_id, key_id=key.key_id, webhook_id=webhook_id)
        if webhook_id is None and most is not None and others >= most:
            raise Problem(
                "forbidden",
                f"The tier allows {most:,} webhooks, and the account has {others:,}",
                hint="DELETE /v1/webhooks/{id} makes room",
            )
        if named + len(wallets or ()) > MOST_WALLETS:
            raise invalid("wallets", f"an account's webhooks name at most {MOST_WALLETS:,} wallets")


class Webhooks(OfAccount):
    """The account's webhooks."""

    def answer(self, given: PageOf, **path: str) -> bytes:
        """Give a page of them; those just changed as well, so from where they were written."""
        account = int(path["account_id"])
        return page(
            self,
            f"webhooks of {account}",
            given,
            -1,
            lambda conn, after: queries.listed(conn, account_id=account, after=after, limit=given.limit + 1),
        )


class Create(Owned):
    """A new webhook."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Make it; its secret is shown this once."""
        key = self.wish(req)
        asked = body(req, WebhookBody)
        columns, secret = self.columns(asked), new_secret()

        def work(conn: Any) -> dict[str, Any]:
            with conn.transaction():
                self.make_room(conn, key, columns["wallets"])
                webhook_id = queries.add(conn, account_id=key.account_id, **columns, secret=secret)
                queries.follow_now(conn, webhook_id=webhook_id)
                queries.changed(conn)
                return {**self.shown(conn, key, webhook_id), "secret": secret}

        self.say(resp, self.write(work), falcon.HTTP_201)


class One(OfAccount):
    """A webhook."""

    def answer(self, given: Any, **path: str) -> bytes:
        """Give it."""
        webhook_id, account = identity(path["id"]), int(path["account_id"])
        with self.service.writes.connection() as conn:
            return self.found(queries.record(conn, account_id=account, webhook_id=webhook_id))


class Change(Owned):
    """A webhook, otherwise."""

    def on_patch(self, req: falcon.Request, resp: falcon.Response, id: str) -> None:  # noqa: A002
        """Change what is said, and leave the rest."""
        key = self.wish(req)
        webhook_id = identity(id)
        asked = body(req, WebhookChanges) if req.content_length else WebhookChanges()
        changes = self.columns(asked)

        def work(conn: Any) -> dict[str, Any]:
            with conn.transaction():
                if "wallets" in changes:
                    self.make_room(conn, key, changes["wallets"], webhook_id)
                self.shown(conn, key, webhook_id)
                which: dict[str, Any] = {"account_id": key.account_id, "webhook_id": webhook_id}
                kept = zip(COLUMNS, queries.settings_of(conn, **which), strict=True)
                queries.change(conn, **which, **(dict(kept) | changes))
                if asked.enabled is True:
                    queries.enable(conn, **which)
                elif asked.enabled is False:
                    queries.disable(conn, webhook_id=webhook_id, reason=None)
                queries.follow_now(conn, webhook_id=webhook_id)
                queries.changed(conn)
                return self.shown(conn, key, webhook_id)

        self.say(resp, self.write(work))


class Remove(Owned):
    """A webhook, no more."""

    def on_delete(self, req: falcon.Request, resp: falcon.Response, id: str) -> None:  # noqa: A002
        """End it, and forget its deliveries."""
        key = self.wish(req)
        webhook_id = identity(id)

        def work(conn: Any) -> None:
            with conn.transaction():
                self.shown(conn, key, webhook_id)
                queries.remove(conn, account_id=key.account_id, webhook_id=webhook_id)
                queries.changed(conn)

        self.write(work)
        self.say(resp, {"id": str(webhook_id), "removed": True})


class Test(Owned):
    """A message to try a webhook with."""

    def on_post(self, req: falcon.Request, resp: falcon.Response, id: str) -> None:  # noqa: A002
        """Queue it before all that waits."""
        key = self.wish(req)
        webhook_id = identity(id)
        now = datetime.fromtimestamp(self.service.clock(), UTC)
        message = {
            "type": TEST,
            "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "seq": None,
            "market_id": None,
            "data": {"message": "This webhook works."},
        }

        def work(conn: Any) -> dict[str, Any]:
            with conn.transaction():
                _enabled(self.shown(conn, key, webhook_id))
                text = msgspec.json.encode(message).decode()
                queries.hold(conn, webhook_id=webhook_id)
                delivery_id = queries.add_test(
                    conn, webhook_id=webhook_id, type=TEST, body=text, now=now, most=MOST_TESTS
                )
                if delivery_id is None:
                    raise Problem(
                        "burst_exceeded",
                        f"{MOST_TESTS} tests of this webhook wait already",
                        hint="GET /v1/webhooks/{id}/deliveries tells what became of them",
                        headers={"Retry-After": "60"},
                    )
                queries.go_on(conn, webhook_id=webhook_id, more=1, now=now)
                return _delivery(conn, key, webhook_id, delivery_id)

        self.say(resp, self.write(work), falcon.HTTP_202)


class RotateSecret(Owned):
    """Another secret, in two steps."""

    def on_post(self, req: falcon.Request, resp: falcon.Response, id: str) -> None:  # noqa: A002
        """Take a step."""
        key = self.wish(req)
        webhook_id = identity(id)
        step = body(req, RotationBody).step if req.content_length else "begin"
        which: dict[str, Any] = {"account_id": key.account_id, "webhook_id": webhook_id}
        answer: dict[str, Any] = {"id": str(webhook_id), "rotating": step == "begin"}

        def work(conn: Any) -> bool | None:
            with conn.transaction():
                self.shown(conn, key, webhook_id)
                done: bool | None
                if step == "begin":
                    answer["secret"] = new_secret()
                    done = queries.begin_rotation(conn, **which, secret=answer["secret"])
                else:
                    query = queries.finish_rotation if step == "finish" else queries.cancel_rotation
                    done = query(conn, **which)
                return done

        if not self.write(work):
            if step == "begin":
                raise invalid("step", "a rotation was begun already", hint='First {"step": "finish"} or "cancel"')
            raise invalid("step", "no rotation was begun", hint='First {"step": "begin"}')
        told = {
            "begin": "Both secrets sign now. Have your receiver take the new one, then finish.",
            "finish": "The new secret alone signs now.",
            "cancel": "The old secret alone signs, as before.",
        }
        self.say(resp, {**answer, "message": told[step]})


class Deliveries(OfAccount):
    """What became of each message."""

    def answer(self, given: DeliveriesOf, **path: str) -> bytes:
        """Give a page, the newest first."""
        webhook_id, account = identity(path["id"]), int(path["account_id"])
        which: dict[str, Any] = {"account_id": account, "webhook_id": webhook_id}
        with self.service.writes.connection() as conn:
            self.found(queries.record(conn, **which))
        return page(
            self,
            f"deliveries of {webhook_id} {given.state}",
            given,
            ABOVE_ALL,
            lambda conn, before: queries.deliveries(
                conn, **which, state=given.state, before=before, limit=given.limit + 1
            ),
        )


class Redeliver(Owned):
    """A message once more."""

    def on_post(self, req: falcon.Request, resp: falcon.Response, id: str, delivery_id: str) -> None:  # noqa: A002
        """Queue what is over; try what waits at once, when its turn is there."""
        key = self.wish(req)
        webhook_id, which = identity(id), identity(delivery_id, "delivery")
        now = datetime.fromtimestamp(self.service.clock(), UTC)

        def work(conn: Any) -> dict[str, Any]:
            with conn.transaction():
                _enabled(self.shown(conn, key, webhook_id))
                queries.hold(conn, webhook_id=webhook_id)
                more = queries.again(conn, webhook_id=webhook_id, delivery_id=which, now=now)
                queries.go_on(conn, webhook_id=webhook_id, more=more or 0, now=now)
                return _delivery(conn, key, webhook_id, which)

        self.say(resp, self.write(work), falcon.HTTP_202)


def page(reading: Reading, of: str, given: PageOf, start: int, query: Any) -> bytes:
    """Give a page of a list that is walked by number."""
    cursors, place = reading.service.cursors, Place(of, start)
    if given.cursor is not None:
        place = cursors.read(given.cursor, Place)
        if place.of != of:
            raise Problem("invalid_cursor", "It belongs to another list", hint="Start again without a cursor")
    with reading.service.writes.connection() as conn:
        rows = list(query(conn, place.number))
    shown = rows[: given.limit]
    tail = cursors.write(Place(of, shown[-1][0])) if len(rows) > len(shown) else ""
    data = ",".join(record for _, record in shown)
    return f'{{"data":[{data}],"next_cursor":"{tail}","has_more":{"true" if tail else "false"}}}'.encode()


def _wallets(given: Sequence[str] | None) -> list[bytes] | None:
    return None if given is None else list(dict.fromkeys(bytes.fromhex(each[2:]) for each in given))


def _enabled(webhook: dict[str, Any]) -> None:
    if not webhook["enabled"]:
        raise Problem("forbidden", OFF, hint='PATCH {"enabled": true} first')


def _delivery(conn: Any, key: Key, webhook_id: UUID, delivery_id: UUID) -> dict[str, Any]:
    text = queries.delivery(conn, account_id=key.account_id, webhook_id=webhook_id, delivery_id=delivery_id)
    if text is None:
        raise Problem("not_found", "There is no such delivery", hint="GET /v1/webhooks/{id}/deliveries lists them")
    record: dict[str, Any] = msgspec.json.decode(text)
    return record
