"""Registers and rotates API keys."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import falcon
import msgspec
from cachetools import LRUCache
from msgspec import Meta, Struct

from api.endpoints.base.endpoint import JSON
from api.endpoints.base.resource import Resource
from api.errors import Problem
from api.metering import keys
from api.metering.recovery import InvalidToken
from api.schemas.requests import parse
from sql import audit
from sql.queries import metering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from api.data.pool import Pool
    from api.endpoints.base.endpoint import Endpoint
    from api.metering.key import Key
    from api.metering.recovery import Recovery
    from api.service import Service

T = TypeVar("T", bound=Struct)
DAY_S = 86_400
REGISTER, RECOVERY, CONFIRM = "account.register", "account.recover", "account.confirm"  # in the audit trail
MAX_REFUSED = 10_000  # addresses that a worker refuses until midnight without a query
# PostgreSQL's text holds no NUL. `\s` is not the same in Python as in the ECMA patterns of OpenAPI: this is both.
BLANK = r"\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=rf"^[^\x00]*[^{BLANK}][^\x00]*$")]
UseCase = Annotated[str, Meta(max_length=2000, pattern=r"^[^\x00]*$")]
EMAIL = {"format": "email"}


class Registration(Struct, frozen=True):
    """A request for an API key."""

    app_name: Annotated[Name, Meta(description="What the key is for", examples=["my-bot"])]
    email: Annotated[str, Meta(min_length=3, max_length=320, examples=["you@example.com"], extra_json_schema=EMAIL)]
    use_case: Annotated[UseCase | None, Meta(description="More about the use")] = None


class RecoveryRequest(Struct, frozen=True):
    """A request for a mail that recovers a key."""

    email: Annotated[str, Meta(min_length=3, max_length=320, examples=["you@example.com"], extra_json_schema=EMAIL)]


class ConfirmationRequest(Struct, frozen=True):
    """A token of a mailed link."""

    token: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_-]+$", examples=["q7ZrTk2mVxW0"])]


class WriteResource(Resource):
    """A write endpoint: never cached, never retried."""

    @property
    def pool(self) -> Pool:
        """The pool of writable connections."""
        return self.service.writes

    def write(self, work: Callable[[Any], Any]) -> Any:
        """Run `work` once on a writable connection."""
        with self.pool.connection() as conn:
            return work(conn)

    def entry(
        self, req: falcon.Request, action: str, key: Key | None = None, subject: str | None = None
    ) -> audit.Entry:
        """Return an entry of the audit trail about a request."""
        entry = audit.Entry(action, address=self.service.origin(req), subject=subject)
        if key is not None:
            entry.account_id, entry.key_id = key.account_id, key.key_id
        return entry

    @contextmanager
    def change(
        self, req: falcon.Request, action: str, key: Key | None = None, subject: str | None = None
    ) -> Iterator[tuple[Any, audit.Entry]]:
        """Yield a connection in a transaction, and the entry of the audit trail that is stored with it."""
        entry = self.entry(req, action, key, subject)
        with self.pool.connection() as conn, conn.transaction():
            yield conn, entry
            audit.add(conn, entry)
        audit.report(entry)

    def respond(self, resp: falcon.Response, answer: dict[str, Any], status: str = falcon.HTTP_200) -> None:
        """Send a JSON response with Cache-Control: no-store."""
        resp.status, resp.content_type, resp.data = status, JSON, msgspec.json.encode(answer)
        resp.set_header("Cache-Control", "no-store")


@dataclass
class RefusedRequest:
    """Why a request was refused, for the audit trail; empty: the code of its Problem."""

    result: str = ""
    account_id: int | None = None


class UnauthenticatedResource(WriteResource):
    """A write endpoint without a key, limited per address."""

    def __init__(self, endpoint: Endpoint, service: Service) -> None:
        super().__init__(endpoint, service)
        self._refused: LRUCache[str, float] = LRUCache(MAX_REFUSED)  # addresses, and until when

    @property
    def pool(self) -> Pool:
        """The pool of connections that no customer waits for."""
        return self.service.unauthenticated_pool or self.service.writes

    @contextmanager
    def counting(self, req: falcon.Request, action: str) -> Iterator[RefusedRequest]:
        """Count the request in the audit trail if it is refused."""
        refusal = RefusedRequest()
        try:
            yield refusal
        except Problem as problem:
            result = refusal.result or problem.problem
            self.service.audit.count(self.service.origin(req), action, result, refusal.account_id)
            raise

    def count(self, req: falcon.Request, what: str = "keys") -> None:
        """Limit requests per address and day, against mass registration and probing for registered emails."""
        address, now = self.service.origin(req), self.service.clock()
        origin = address if what == "keys" else f"{what} {address}"
        midnight = now // DAY_S * DAY_S
        today, tomorrow = datetime.fromtimestamp(midnight, UTC), midnight + DAY_S
        if self._refused.get(origin, 0.0) <= now:
            asked = self.write(lambda conn: metering.registered(conn, address=origin, day=today))
            if asked == 1:
                self.write(lambda conn: metering.forget_registrations(conn, day=today))
            if asked <= self.service.registrations_a_day:
                return
            self._refused[origin] = tomorrow
        raise Problem(
            "burst_exceeded",
            f"At most {self.service.registrations_a_day} {what} a day can be requested from one address",
            hint="Retry tomorrow (UTC); one key can serve many programs",
            headers={"Retry-After": str(int(tomorrow - now) + 1)},
        )

    def recovery(self) -> Recovery:
        """Return the sender of links; raise `not_found` if the service sends no mail."""
        if self.service.recovery is None:
            raise Problem("not_found", self.endpoint.missing, hint=self.endpoint.hint)
        return self.service.recovery


class Register(UnauthenticatedResource):
    """Registration of a new key."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Issue a key of the free tier."""
        with self.counting(req, REGISTER) as refusal:
            self.service.admit_unauthenticated(req)
            parse(self.endpoint.parameters, req.params)
            asked = body(req, Registration)
            name = asked.app_name.strip()
            email = normalised(asked.email)
            self.count(req)
            new = self._register(req, refusal, email, name, asked.use_case)
        answer = {
            "key": new.key,
            "app_name": name,
            "tier": "free",
            "credits_month": new.credits_month,
            "credits_burst": new.credits_burst,
            "message": "Store this key: it is not shown again. Send it as X-API-Key.",
        }
        self.respond(resp, answer, falcon.HTTP_201)
        if self.service.recovery is not None:
            self.service.recovery.mail(email, "verify", self.service.origin(req))

    def _register(
        self, req: falcon.Request, refusal: RefusedRequest, email: str, name: str, use_case: str | None
    ) -> keys.IssuedKey:
        try:
            with self.change(req, REGISTER) as (conn, entry):
                new = keys.register(conn, email, name, use_case)
                entry.account_id, entry.key_id = new.account_id, new.key_id
                return new
        except keys.AccountClosed as closed:
            refusal.result, refusal.account_id = "account_closed", closed.account_id
            raise invalid(
                "email",
                "The operator of this service has revoked the keys of this address",
                hint="Ask the operator for a new key",
            ) from None
        except keys.KeyLimitReached as reached:
            refusal.result, refusal.account_id = "has_a_key", reached.account_id
            raise invalid(
                "email",
                "This address already has an active key",
                hint="POST /v1/keys/rotate replaces it, POST /recover if it is lost; one key per address",
            ) from None


class Recover(UnauthenticatedResource):
    """Recovery of a lost key by mail."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Mail a link; the answer and its duration are the same whether the address has an account or not."""
        origin = self.service.origin(req)
        with self.counting(req, RECOVERY):
            self.service.admit_unauthenticated(req)
            parse(self.endpoint.parameters, req.params)
            email = normalised(body(req, RecoveryRequest).email)
            recovery = self.recovery()
            self.count(req, "mails")
            recovery.mail(email, "recover", origin)
        self.service.audit.count(origin, RECOVERY, "requested")  # whether there is such an account or not
        message = "If the address has an account, a mail with a link is sent to it; the link is valid for an hour."
        self.respond(resp, {"message": message}, falcon.HTTP_202)


class Confirm(UnauthenticatedResource):
    """Use of a mailed link."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Verify the address, or recover the key."""
        with self.counting(req, CONFIRM) as refusal:
            self.service.admit_unauthenticated(req)
            parse(self.endpoint.parameters, req.params)
            token = body(req, ConfirmationRequest).token
            recovery = self.recovery()
            try:
                with self.change(req, CONFIRM) as (conn, entry):
                    done = recovery.confirm(conn, token)
                    entry.subject, entry.account_id, entry.key_id = done.purpose, done.account_id, done.key_id
                    if done.former_account_id is not None:
                        entry.detail["former_account_id"] = done.former_account_id
            except InvalidToken:
                refusal.result = "invalid_token"
                detail = "The link is not valid: it was used already, or has expired"
                raise invalid("token", detail, hint="POST /recover sends another") from None
        if done.replaced_id is not None:
            self.service.keys.end(done.replaced_id)
        message = "Store this key: it is not shown again." if done.key else "The address is verified."
        self.respond(resp, {"purpose": done.purpose, "key": done.key, "message": message})


class Rotate(WriteResource):
    """Replacement of a key."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Replace the key of this request."""
        self.admit(req)
        old, key = req.get_header("X-API-Key") or "", req.context.grant.key
        try:
            with self.change(req, "key.rotate", key) as (conn, _):
                new = keys.rotate(conn, old)
                if new is None:
                    raise Problem("not_found", self.endpoint.missing)
        finally:
            self.service.keys.end(key.key_id)
        self.respond(
            resp, {"key": new, "message": "The old key is no longer valid. Store this one: it is not shown again."}
        )


def body(req: falcon.Request, kind: type[T]) -> T:
    """Decode a JSON body; raise a Problem that names the invalid field."""
    try:
        return msgspec.json.decode(req.bounded_stream.read(), type=kind)
    except msgspec.ValidationError as error:
        message = str(error)
        name = message.partition("$.")[2].rstrip("`") or message.partition("`")[2].partition("`")[0]
        missing = "missing required" in message
        raise Problem(
            "missing_parameter" if missing else "invalid_parameter",
            f"`{name}` is required" if missing else message,
            errors=[{"name": name, "detail": message}],
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Problem("invalid_body", "The body is not valid JSON") from None


def normalised(email: str) -> str:
    """Validate an email address and return its normalised form."""
    try:
        return keys.normalised(email)
    except ValueError as error:
        raise invalid("email", str(error)) from None


def invalid(name: str, detail: str, hint: str | None = None) -> Problem:
    """Return the Problem for an invalid field."""
    return Problem("invalid_parameter", f"`{name}`: {detail}", hint=hint, errors=[{"name": name, "detail": detail}])
