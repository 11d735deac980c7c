"""Recovery of a lost key by mail, and the page that mailed links lead to, by forms that need no script."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from api.errors import without_secrets
from api.site.views.registration import fields, forwarded
from api.site.visit import Page, Refusal

if TYPE_CHECKING:
    from api.site.backend import ApiResponse
    from api.site.visit import Visit

NO_STORE = {"Cache-Control": "no-store"}


async def form(visit: Visit) -> Page:  # noqa: ARG001 (every page's)
    """Ask for the email address."""
    return _page("recover", "Recover a key", "A new key by mail, for one that was lost.")


async def submitted(visit: Visit) -> Page:
    """Request the mail."""
    return await _posted(visit, "recover", "Recover a key", "/recover", "email")


async def link(visit: Visit) -> Page:
    """Ask whether to use a mailed link: mail programs open links by themselves."""
    return _page("confirm", "Confirm", "A link that was mailed.", token=visit.param("token"))


async def confirmed(visit: Visit) -> Page:
    """Use a mailed link; show the new key once."""
    return await _posted(visit, "confirm", "Confirm", "/confirm", "token")


async def _posted(visit: Visit, template: str, title: str, path: str, name: str) -> Page:
    given = (await fields(visit.request, (name,)))[name]
    answer = await visit.site.backend.request(
        "POST",
        path,
        body=msgspec.json.encode({name: given}),
        headers=forwarded(visit),
    )
    if answer.ok:
        return _page(template, title, "", done=answer.data)
    if answer.status in {400, 404, 429}:
        kept = "" if name == "token" and answer.status != 429 else without_secrets(given)  # it is of no use any more
        return _page(template, title, "", answer.status, wrong=_reason(answer), **{name: kept})
    raise Refusal(503, "Mail cannot be sent right now", "Try again in a moment.")


def _reason(answer: ApiResponse) -> str:
    said = [each["detail"] for each in answer.data.get("errors", [])] or [answer.data["detail"]]
    return ". ".join(each for each in (*said, answer.data["hint"]) if each)


def _page(template: str, title: str, description: str, status: int = 200, **data: object) -> Page:
    given = {"email": "", "token": "", "wrong": "", "done": None, **data}
    return Page(template=template, title=title, description=description, data=given, status=status, headers=NO_STORE)
