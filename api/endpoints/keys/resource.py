"""Getting a key, and replacing it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import falcon
import msgspec
from msgspec import Meta, Struct

from api.endpoints.base.endpoint import JSON
from api.endpoints.base.resource import Resource
from api.errors import Problem
from api.metering import keys
from api.schemas.requests import parse
from sql.queries import metering

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T", bound=Struct)
DAY_S = 86_400
# PostgreSQL's text holds no NUL.
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")]
Words = Annotated[str, Meta(max_length=2000, pattern=r"^[^\x00]*$")]
EMAIL = {"format": "email"}


class Registration(Struct, frozen=True):
    """Who asks for a key."""

    app_name: Annotated[Name, Meta(description="What the key is for", examples=["my-bot"])]
    email: Annotated[str, Meta(min_length=3, max_length=320, examples=["you@example.com"], extra_json_schema=EMAIL)]
    use_case: Annotated[Words | None, Meta(description="More about it")] = None


class Writing(Resource):
    """An endpoint that changes something: never cached, never repeated."""

    def write(self, work: Callable[[Any], Any]) -> Any:
        """Change something in the database, once."""
        with self.service.writes.connection() as conn:
            return work(conn)

    def say(self, resp: falcon.Response, answer: dict[str, Any], status: str = falcon.HTTP_200) -> None:
        """Answer with something that must not be kept."""
        resp.status, resp.content_type, resp.data = status, JSON, msgspec.json.encode(answer)
        resp.set_header("Cache-Control", "no-store")


class Register(Writing):
    """A key for whoever asks."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Make a key of the free tier."""
        parse(self.endpoint.parameters, req.params)
        asked = body(req, Registration)
        name = asked.app_name.strip()
        email = normalised(asked.email)
        self._count(req)
        try:
            key, month, burst = self.write(lambda conn: keys.issue(conn, email, name, "free", asked.use_case))
        except keys.NoRoom:
            raise invalid(
                "email",
                "This address has an active key",
                hint="POST /v1/keys/rotate replaces it; the free tier has one key an address",
            ) from None
        answer = {
            "key": key,
            "app_name": name,
            "tier": "free",
            "credits_month": month,
            "credits_burst": burst,
            "message": "Keep this key: it is not shown again. Send it as X-API-Key.",
        }
        self.say(resp, answer, falcon.HTTP_201)

    def _count(self, req: falcon.Request) -> None:
        """Refuse an address that has asked for many keys today: it could make any number, or find out who has one."""
        origin = self.service.proxies.origin(req.remote_addr or "", req.get_header("X-Forwarded-For"))
        now, most = self.service.clock(), self.service.registrations_a_day
        midnight = now // DAY_S * DAY_S
        today = datetime.fromtimestamp(midnight, UTC)
        asked = self.write(lambda conn: metering.registered(conn, address=origin, day=today))
        if asked == 1:
            self.write(lambda conn: metering.forget_registrations(conn, day=today))
        if asked > most:
            raise Problem(
                "burst_exceeded",
                f"{most} keys a day can be asked for from one address",
                hint="Come back tomorrow (UTC); one key serves many programs",
                headers={"Retry-After": str(int(midnight + DAY_S - now) + 1)},
            )


class Rotate(Writing):
    """A new key for an old one."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Replace the key that this was asked with."""
        self.admit(req)
        old = req.get_header("X-API-Key") or ""
        new = self.write(lambda conn: keys.rotate(conn, old))
        self.service.keys.end(req.context.grant.key.key_id)
        if new is None:
            raise Problem("not_found", self.endpoint.missing)
        self.say(resp, {"key": new, "message": "The old key is no longer valid. Keep this one: it is not shown again."})


def body(req: falcon.Request, kind: type[T]) -> T:
    """Read a JSON body; what is wrong with it is named."""
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
        raise Problem("invalid_body", "The body is not JSON") from None


def normalised(email: str) -> str:
    """Check an email address, and give the form by which it is known."""
    try:
        return keys.normalised(email)
    except ValueError as error:
        raise invalid("email", str(error)) from None


def invalid(name: str, detail: str, hint: str | None = None) -> Problem:
    """Give the refusal of one field."""
    return Problem("invalid_parameter", f"`{name}`: {detail}", hint=hint, errors=[{"name": name, "detail": detail}])
