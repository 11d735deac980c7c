"""Resources that manage webhooks and list their deliveries. The orchestration delivers them."""

from __future__ import annotations

import base64
import re
import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import falcon
import msgspec
from msgspec import UNSET, Struct

from api.endpoints.keys.resource import WriteResource, body, invalid
from api.endpoints.wallets.resource import AccountResource
from api.endpoints.webhooks import lookup
from api.endpoints.webhooks.requests import RotationBody, WebhookBody, WebhookChanges
from api.errors import Problem
from sql import audit
from sql.database import micro
from sql.queries import webhooks as queries
from sql.webhook_secrets import sealed
from upstream.transport import addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from api.endpoints.base.resource import ReadResource
    from api.endpoints.webhooks.requests import DeliveryParameters, PageParameters
    from api.metering.key import Key

ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
MAX_WALLETS = 5000  # in all webhooks of an account together, as on the stream
TEST = "webhook.test"
MAX_TESTS = 100  # pending, per webhook
CHALLENGE = "webhook.challenge"
CHALLENGES_PER_WEBHOOK = 10  # a day, for each webhook that the tier allows
MIN_FILTER_USD = 100  # a lower `min_usd` leaves almost all trades
BUSY = {"trade": ("market_ids",), "onchain_trade": ("market_ids", "wallets")}  # events, and the filters that limit them
FILTERS = {"market_ids": "markets", "wallets": "wallets"}  # as requests name them
DAY = timedelta(days=1)
OFF = "The webhook is disabled"
PENDING = "The webhook's URL is not verified yet"
ABOVE_ALL = 2**62
COLUMNS = ("url", "events", "market_ids", "wallets", "min_usd")


class WebhookCursor(Struct, frozen=True, array_like=True):
    """A position in a list, with the list's name, so that a cursor is valid for that list only."""

    of: str
    number: int


def identity(text: str, what: str = "webhook") -> UUID:
    """Parse an id; raise `not_found` for any other text."""
    if not ID.match(text):
        raise Problem("not_found", f"The {what} does not exist", hint="An `id` is 36 characters long, in lower case")
    return UUID(text)


def new_secret() -> str:
    """Return a new secret: 256 random bits in the Standard Webhooks format."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


class WebhookResource(WriteResource):
    """A write endpoint for the account's own webhooks."""

    def authorize(self, req: falcon.Request) -> Key:
        """Admit the request and return its key."""
        self.admit(req)
        key: Key = req.context.grant.key
        return key

    def shown(self, conn: Any, key: Key, webhook_id: UUID) -> dict[str, Any]:
        """Return the webhook's current record."""
        text = queries.record(conn, account_id=key.account_id, webhook_id=webhook_id)
        if text is None:
            raise Problem("not_found", "The webhook does not exist", hint="GET /v1/webhooks lists your webhooks")
        record: dict[str, Any] = msgspec.json.decode(text)
        return record

    def columns(self, asked: WebhookBody | WebhookChanges) -> dict[str, Any]:
        """Return the given fields as stored columns; omitted fields are omitted."""
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
        """Refuse forbidden addresses; each connection is checked again at delivery."""
        try:
            read = addresses.parse(url)
            port = read.port or addresses.PORTS[read.scheme]
            addresses.resolve_allowed(read.raw_host.decode(), port, self.service.webhook_networks, lookup.resolve)
        except addresses.ForbiddenAddress as refusal:
            raise invalid("url", str(refusal)) from None
        except OSError:  # the name does not resolve now, or not soon: checked again at delivery
            pass
        return url

    def market_ids(self, names: Sequence[str] | None) -> list[str] | None:
        """Return the condition ids of markets."""
        if names is None:
            return None
        try:
            return list(dict.fromkeys(self.service.markets.of(name).market_id for name in names))
        except Problem as refusal:
            if refusal.problem != "not_found":
                raise
            raise invalid("markets", "the market does not exist", hint=refusal.hint) from None

    def require_filters(self, conn: Any, key: Key, columns: dict[str, Any]) -> None:
        """Refuse a webhook for all events of a busy type, except in the top tier."""
        if queries.may_be_unfiltered(conn, key_id=key.key_id) or (columns["min_usd"] or 0) >= micro(MIN_FILTER_USD):
            return
        for event, filters in BUSY.items():
            if event in columns["events"] and not any(columns[name] for name in filters):
                names = " or ".join(f"`{FILTERS[name]}`" for name in filters)
                raise invalid(
                    "markets",
                    f"`{event}` needs a filter in the {key.tier} tier: {names}, or `min_usd` of at least "
                    f"{MIN_FILTER_USD}",
                    hint="The stream has all trades",
                )

    def send_challenge(self, conn: Any, key: Key, webhook_id: UUID) -> None:
        """Hold back all deliveries until the receiver repeats a challenge, and queue one. Locks the webhook."""
        now = datetime.fromtimestamp(self.service.clock(), UTC)
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        which: dict[str, Any] = {"account_id": key.account_id, "webhook_id": webhook_id}
        text = secrets.token_urlsafe(32)
        queries.challenge(conn, **which, challenge=text)
        _, _, webhooks = queries.room(conn, key_id=key.key_id, **which)
        most = None if webhooks is None else webhooks * CHALLENGES_PER_WEBHOOK
        if queries.count_challenge(conn, account_id=key.account_id, day=today, most=most) is None:
            raise Problem(
                "burst_exceeded",
                f"The account's {most:,} verifications of the day are used up",
                hint="Retry tomorrow (UTC)",
                headers={"Retry-After": str(int((today + DAY - now).total_seconds()) + 1)},
            )
        self.add_message(conn, webhook_id, CHALLENGE, {"challenge": text}, now)

    def add_message(self, conn: Any, webhook_id: UUID, kind: str, data: dict[str, str], now: datetime) -> UUID:
        """Queue a message ahead of all pending deliveries, with a single attempt."""
        timestamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        message = {"type": kind, "timestamp": timestamp, "seq": None, "market_id": None, "data": data}
        body_ = msgspec.json.encode(message).decode()
        delivery_id: UUID | None = queries.add_test(
            conn, webhook_id=webhook_id, type=kind, body=body_, now=now, most=MAX_TESTS
        )
        if delivery_id is None:
            raise Problem(
                "burst_exceeded",
                f"{MAX_TESTS} tests and challenges of this webhook are already pending",
                hint="GET /v1/webhooks/{id}/deliveries shows their state",
                headers={"Retry-After": "60"},
            )
        queries.go_on(conn, webhook_id=webhook_id, more=1, now=now)
        return delivery_id

    def make_room(self, conn: Any, key: Key, wallets: Sequence[bytes] | None, webhook_id: UUID | None = None) -> None:
        """Enforce the tier's limits. Locks the account, so its changes are serialised from here on."""
        queries.hold_account(conn, account_id=key.account_id)
        others, named, most = queries.room(conn, account_id=key.account_id, key_id=key.key_id, webhook_id=webhook_id)
        if webhook_id is None and most is not None and others >= most:
            raise Problem(
                "forbidden",
                f"The tier allows {most:,} webhooks, and the account has {others:,}",
                hint="Remove one with DELETE /v1/webhooks/{id}",
            )
        if named + len(wallets or ()) > MAX_WALLETS:
            raise invalid("wallets", f"an account's webhooks can list at most {MAX_WALLETS:,} wallets")


class WebhookList(AccountResource):
    """The account's webhooks."""

    def answer(self, given: PageParameters, **path: str) -> bytes:
        """Return a page, read from the primary so that recent changes are included."""
        account = int(path["account_id"])
        return page(
            self,
            f"webhooks of {account}",
            given,
            -1,
            lambda conn, after: queries.listed(conn, account_id=account, after=after, limit=given.limit + 1),
        )


class CreateWebhook(WebhookResource):
    """Creation of a webhook."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Create the webhook and challenge its receiver; its secret is shown only once."""
        key = self.authorize(req)
        asked = body(req, WebhookBody)
        columns, secret = self.columns(asked), new_secret()

        with self.change(req, "webhook.create", key) as (conn, entry):
            self.require_filters(conn, key, columns)
            self.make_room(conn, key, columns["wallets"])
            stored = sealed(conn, self.service.webhook_secrets, secret)
            webhook_id = queries.add(conn, account_id=key.account_id, **columns, secret=stored)
            self.send_challenge(conn, key, webhook_id)
            queries.follow_now(conn, webhook_id=webhook_id)
            queries.changed(conn)
            answer = {**self.shown(conn, key, webhook_id), "secret": secret}
            entry.subject = str(webhook_id)

        self.respond(resp, answer, falcon.HTTP_201)


class WebhookDetail(AccountResource):
    """One webhook."""

    def answer(self, given: Any, **path: str) -> bytes:
        """Return the webhook."""
        webhook_id, account = identity(path["id"]), int(path["account_id"])
        with self.service.writes.connection() as conn:
            return self.required(queries.record(conn, account_id=account, webhook_id=webhook_id))


class ChangeWebhook(WebhookResource):
    """Change of a webhook."""

    def on_patch(self, req: falcon.Request, resp: falcon.Response, id: str) -> None:  # noqa: A002
        """Change the given fields and leave the rest; a new URL is challenged."""
        key = self.authorize(req)
        webhook_id = identity(id)
        asked = body(req, WebhookChanges) if req.content_length else WebhookChanges()
        changes = self.columns(asked)
        entry = self.entry(req, "webhook.change_url", key, str(webhook_id))

        def work(conn: Any) -> dict[str, Any]:
            with conn.transaction():
                if "wallets" in changes:
                    self.make_room(conn, key, changes["wallets"], webhook_id)
                self.shown(conn, key, webhook_id)
                which: dict[str, Any] = {"account_id": key.account_id, "webhook_id": webhook_id}
                kept = dict(zip(COLUMNS, queries.settings_of(conn, **which), strict=True))
                wanted = kept | changes
                if changes.keys() - {"url"}:
                    self.require_filters(conn, key, wanted)
                queries.change(conn, **which, **wanted)
                if asked.enabled is True:
                    queries.enable(conn, **which)
                elif asked.enabled is False:
                    queries.disable(conn, webhook_id=webhook_id, reason=None)
                if wanted["url"] != kept["url"]:
                    self.send_challenge(conn, key, webhook_id)
                    audit.add(conn, entry)
                queries.follow_now(conn, webhook_id=webhook_id)
                queries.changed(conn)
                return self.shown(conn, key, webhook_id)

        answer = self.write(work)
        if entry.stored or entry.detail:
            audit.report(entry)
        self.respond(resp, answer)


class RemoveWebhook(WebhookResource):
    """Removal of a webhook."""

    def on_delete(self, req: falcon.Request, resp: falcon.Response, id: str) -> None:  # noqa: A002
        """Remove the webhook and its deliveries."""
        key = self.authorize(req)
        webhook_id = identity(id)

        with self.change(req, "webhook.delete", key, str(webhook_id)) as (conn, _):
            self.shown(conn, key, webhook_id)
            queries.remove(conn, account_id=key.account_id, webhook_id=webhook_id)
            queries.changed(conn)

        self.respond(resp, {"id": str(webhook_id), "removed": True})


class SendTest(WebhookResource):
    """A test message to a webhook."""

    def on_post(self, req: falcon.Request, resp: falcon.Response, id: str) -> None:  # noqa: A002
        """Queue a test message ahead of all pending deliveries."""
        key = self.authorize(req)
        webhook_id = identity(id)
        now = datetime.fromtimestamp(self.service.clock(), UTC)

        def work(conn: Any) -> dict[str, Any]:
            with conn.transaction():
                queries.hold(conn, webhook_id=webhook_id)
                _active(self.shown(conn, key, webhook_id))
                delivery_id = self.add_message(conn, webhook_id, TEST, {"message": "This webhook works."}, now)
                return _delivery(conn, key, webhook_id, delivery_id)

        self.respond(resp, self.write(work), falcon.HTTP_202)


class VerifyWebhook(WebhookResource):
    """A new challenge to a webhook's receiver."""

    def on_post(self, req: falcon.Request, resp: falcon.Response, id: str) -> None:  # noqa: A002
        """Challenge the receiver again; an active webhook is left as it is."""
        key = self.authorize(req)
        webhook_id = identity(id)

        def work(conn: Any) -> dict[str, Any]:
            with conn.transaction():
                queries.hold(conn, webhook_id=webhook_id)
                webhook = self.shown(conn, key, webhook_id)
                _enabled(webhook)
                if webhook["state"] == "pending":
                    self.send_challenge(conn, key, webhook_id)
                return self.shown(conn, key, webhook_id)

        self.respond(resp, self.write(work), falcon.HTTP_202)


class RotateSecret(WebhookResource):
    """Rotation of a webhook's secret, in two steps."""

    def on_post(self, req: falcon.Request, resp: falcon.Response, id: str) -> None:  # noqa: A002
        """Begin, finish or cancel a rotation."""
        key = self.authorize(req)
        webhook_id = identity(id)
        step = body(req, RotationBody).step if req.content_length else "begin"
        which: dict[str, Any] = {"account_id": key.account_id, "webhook_id": webhook_id}
        answer: dict[str, Any] = {"id": str(webhook_id), "rotating": step == "begin"}

        with self.change(req, "webhook.rotate_secret", key, str(webhook_id)) as (conn, entry):
            entry.detail["step"] = step
            self.shown(conn, key, webhook_id)
            if step == "begin":
                answer["secret"] = new_secret()
                stored = sealed(conn, self.service.webhook_secrets, answer["secret"])
                if not queries.begin_rotation(conn, **which, secret=stored):
                    hint = 'First send {"step": "finish"} or "cancel"'
                    raise invalid("step", "a rotation is already in progress", hint=hint)
            elif not (queries.finish_rotation if step == "finish" else queries.cancel_rotation)(conn, **which):
                raise invalid("step", "no rotation is in progress", hint='First send {"step": "begin"}')
        messages = {
            "begin": "Both secrets sign now. Configure the new one in your receiver, then finish.",
            "finish": "Only the new secret signs now.",
            "cancel": "Only the old secret signs, as before.",
        }
        self.respond(resp, {**answer, "message": messages[step]})


class Deliveries(AccountResource):
    """The deliveries of a webhook."""

    def answer(self, given: DeliveryParameters, **path: str) -> bytes:
        """Return a page, newest first."""
        webhook_id, account = identity(path["id"]), int(path["account_id"])
        which: dict[str, Any] = {"account_id": account, "webhook_id": webhook_id}
        with self.service.writes.connection() as conn:
            self.required(queries.record(conn, **which))
        return page(
            self,
            f"deliveries of {webhook_id} {given.state}",
            given,
            ABOVE_ALL,
            lambda conn, before: queries.deliveries(
                conn, **which, state=given.state, before=before, limit=given.limit + 1
            ),
        )


class Redeliver(WebhookResource):
    """Redelivery of a message."""

    def on_post(self, req: falcon.Request, resp: falcon.Response, id: str, delivery_id: str) -> None:  # noqa: A002
        """Requeue a finished delivery; attempt a pending one as soon as it is next in order."""
        key = self.authorize(req)
        webhook_id, which = identity(id), identity(delivery_id, "delivery")
        now = datetime.fromtimestamp(self.service.clock(), UTC)

        def work(conn: Any) -> dict[str, Any]:
            with conn.transaction():
                queries.hold(conn, webhook_id=webhook_id)
                _active(self.shown(conn, key, webhook_id))
                more = queries.again(conn, webhook_id=webhook_id, delivery_id=which, now=now)
                queries.go_on(conn, webhook_id=webhook_id, more=more or 0, now=now)
                return _delivery(conn, key, webhook_id, which)

        self.respond(resp, self.write(work), falcon.HTTP_202)


def page(reading: ReadResource, of: str, given: PageParameters, start: int, query: Any) -> bytes:
    """Return a page of a list that is ordered by number."""
    cursors, place = reading.service.cursors, WebhookCursor(of, start)
    if given.cursor is not None:
        place = cursors.read(given.cursor, WebhookCursor)
        if place.of != of:
            raise Problem("invalid_cursor", "It belongs to a different list", hint="Start again without a cursor")
    with reading.service.writes.connection() as conn:
        rows = list(query(conn, place.number))
    shown = rows[: given.limit]
    tail = cursors.write(WebhookCursor(of, shown[-1][0])) if len(rows) > len(shown) else ""
    data = ",".join(record for _, record in shown)
    return f'{{"data":[{data}],"next_cursor":"{tail}","has_more":{"true" if tail else "false"}}}'.encode()


def _wallets(given: Sequence[str] | None) -> list[bytes] | None:
    return None if given is None else list(dict.fromkeys(bytes.fromhex(each[2:]) for each in given))


def _enabled(webhook: dict[str, Any]) -> None:
    if not webhook["enabled"]:
        raise Problem("forbidden", OFF, hint='Enable it with PATCH {"enabled": true}')


def _active(webhook: dict[str, Any]) -> None:
    _enabled(webhook)
    if webhook["state"] == "pending":
        raise Problem(
            "forbidden", PENDING, hint="POST /v1/webhooks/{id}/verify sends its receiver a challenge to repeat"
        )


def _delivery(conn: Any, key: Key, webhook_id: UUID, delivery_id: UUID) -> dict[str, Any]:
    text = queries.delivery(conn, account_id=key.account_id, webhook_id=webhook_id, delivery_id=delivery_id)
    if text is None:
        raise Problem(
            "not_found", "The delivery does not exist", hint="GET /v1/webhooks/{id}/deliveries lists deliveries"
        )
    record: dict[str, Any] = msgspec.json.decode(text)
    return record
