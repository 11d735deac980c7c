"""Lists: records with their count, and records that are computed every so often."""

from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import msgspec

from api.endpoints.base.resource import Reading

if TYPE_CHECKING:
    from collections.abc import Iterable

    import falcon

    from api.schemas.requests import Parameters
    from api.server.middleware import Answer

COMPUTED = {"Last-Modified": "When this was computed (GMT)"}  # of the answers that have no place for it


def array(records: Iterable[str]) -> bytes:
    """Give records as an array."""
    return f"[{','.join(records)}]".encode()


def listed(rows: list[tuple[Any, ...]], **said: Any) -> bytes:
    """Give records as `data` and their `count`, after what else is said."""
    before = "".join(f'"{name}":{msgspec.json.encode(value).decode()},' for name, value in said.items())
    return f'{{{before}"data":[{",".join(row[-1] for row in rows)}],"count":{len(rows)}}}'.encode()


class Computed(Reading):
    """Records that are computed every so often, in an array: it has no place to say when, so a header does."""

    def latest(self, given: Any) -> tuple[int | None, list[str]]:
        """Give when they were computed, in Unix seconds, and them."""
        found: tuple[int | None, list[str]] = self.read(**msgspec.structs.asdict(given))
        return found

    def tell(self, req: falcon.Request, resp: Answer, body: bytes, tag: str) -> None:
        """Say when it was computed, too: that is kept behind the tag, which tells bodies apart and not instants."""
        tag, _, computed_at = tag.partition("@")
        if computed_at:
            resp.set_header("Last-Modified", formatdate(int(computed_at), usegmt=True))
        super().tell(req, resp, body, tag)

    def answer(self, given: list[str], **path: str) -> bytes:
        """Give what was found."""
        return array(given)

    def _tagged(self, given: Any, path: dict[str, str]) -> tuple[bytes, str]:
        computed_at, given = self.latest(given)
        body, tag = super()._tagged(given, path)
        return body, tag if computed_at is None else f"{tag}@{computed_at}"


class Listing(Reading):
    """Records and their count; a kind of list repeats some of what it was asked."""

    repeats: tuple[str, ...] = ()

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Give them."""
        assert self.endpoint.query is not None
        asked = msgspec.structs.asdict(given)
        return listed(self.rows(self.endpoint.query, **asked), **{name: asked[name] for name in self.repeats})
