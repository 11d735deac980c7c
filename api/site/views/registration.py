"""Registration for an API key, by a form that needs no script."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import msgspec

from api.errors import without_secrets
from api.server.address import SITE_TOKEN
from api.site.visit import Page, Refusal

if TYPE_CHECKING:
    from starlette.requests import Request

    from api.site.visit import Visit

FIELDS = ("app_name", "email", "use_case")
MAX_FORM_BYTES = 16_384


async def form(visit: Visit) -> Page:
    """Show the form."""
    return _page(visit, {}, "", {})


async def submitted(visit: Visit) -> Page:
    """Request a key from the API and show it once."""
    given = await fields(visit.request, FIELDS)
    answer = await visit.site.backend.request(
        "POST",
        "/register",
        body=msgspec.json.encode({name: value for name, value in given.items() if value}),
        headers=forwarded(visit),
    )
    if answer.status == 201:
        return Page(
            template="registered",
            title="Your key",
            description="Shown only once.",
            data={"key": answer.data},
            headers={"Cache-Control": "no-store"},
        )
    if answer.status in {400, 429}:
        problem = answer.data
        wrong = {each["name"]: each["detail"] for each in problem.get("errors", [])}
        said = "" if wrong else ". ".join(each for each in (problem["detail"], problem["hint"]) if each)
        return _page(visit, given, said, wrong, answer.status)
    raise Refusal(503, "Keys cannot be issued right now", "Try again in a moment.")


def _page(visit: Visit, given: dict[str, str], said: str, wrong: dict[str, str], status: int = 200) -> Page:
    free = next((tier for tier in visit.site.tiers if tier["tier"] == "free"), None)
    return Page(
        template="register",
        title="Get a key",
        description="A free API key, issued immediately and without a card.",
        data={
            "given": dict.fromkeys(FIELDS, "") | {name: without_secrets(value) for name, value in given.items()},
            "said": said,
            "wrong": wrong,
            "free": free,
        },
        status=status,
        headers={"Cache-Control": "no-store"} if given else {},
    )


async def fields(request: Request, names: tuple[str, ...]) -> dict[str, str]:
    """Read a submitted form."""
    if not request.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded"):
        raise Refusal(415, "This URL is for the form", "Programs use the API: POST /register with JSON.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM_BYTES:
            raise Refusal(413, "The form is too large")
    try:
        read = parse_qs(body.decode(), max_num_fields=10)
    except (UnicodeDecodeError, ValueError):
        raise Refusal(400, "The form cannot be read") from None
    return {name: read.get(name, [""])[0].strip() for name in names}


def forwarded(visit: Visit) -> dict[str, str]:
    """Return the headers that tell the API the client's address: appended to X-Forwarded-For, as a proxy does."""
    request = visit.request
    before = request.headers.get("X-Forwarded-For")
    remote = request.client.host if request.client else "127.0.0.1"
    token = {SITE_TOKEN: visit.site.token} if visit.site.token else {}
    return {"X-Forwarded-For": f"{before}, {remote}" if before else remote, **token}
