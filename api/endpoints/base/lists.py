"""List endpoints: records with their count, and records that are recomputed periodically."""

from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import msgspec

from api.endpoints.base.resource import ReadResource

if TYPE_CHECKING:
    from collections.abc import Iterable

    import falcon

    from api.schemas.requests import Parameters
    from api.server.middleware import ApiResponse

LAST_MODIFIED = {"Last-Modified": "When this was computed (GMT)"}  # for responses without a field for it


def json_array(records: Iterable[str]) -> bytes:
    """Return records as a JSON array."""
    return f"[{','.join(records)}]".encode()


def json_list(rows: list[tuple[Any, ...]], **said: Any) -> bytes:
    """Return a JSON object with the given fields, the records as `data`, and their `count`."""
    before = "".join(f'"{name}":{msgspec.json.encode(value).decode()},' for name, value in said.items())
    return f'{{{before}"data":[{",".join(row[-1] for row in rows)}],"count":{len(rows)}}}'.encode()


class ComputedList(ReadResource):
    """An array of periodically recomputed records; the Last-Modified header says when."""

    def latest(self, given: Any) -> tuple[int | None, str]:
        """Return when the records were computed, in Unix seconds, and the records, with commas between."""
        found: tuple[int | None, str] = self.read(**msgspec.structs.asdict(given))
        return found

    def respond(
        self, req: falcon.Request, resp: ApiResponse, body: bytes, tag: str, lag_s: float | None = None
    ) -> None:
        """Send the body with Last-Modified; the cache keeps that instant after the tag, as `tag@seconds`."""
        tag, _, computed_at = tag.partition("@")
        if computed_at:
            resp.set_header("Last-Modified", formatdate(int(computed_at), usegmt=True))
        super().respond(req, resp, body, tag, lag_s)

    def answer(self, given: str, **path: str) -> bytes:
        """Return the records as a JSON array."""
        return f"[{given}]".encode()

    def _with_etag(self, given: Any, path: dict[str, str]) -> tuple[bytes, str]:
        computed_at, given = self.latest(given)
        body, tag = super()._with_etag(given, path)
        return body, tag if computed_at is None else f"{tag}@{computed_at}"


class CountedList(ReadResource):
    """Records and their count; subclasses may echo some of the parameters."""

    repeats: tuple[str, ...] = ()

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Return the list as JSON."""
        asked = msgspec.structs.asdict(given)
        return json_list(self.read(**asked), **{name: asked[name] for name in self.repeats})
