"""HTTP responses: encoded by msgspec, with the exchange's own error texts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

Answer: TypeAlias = Callable[[Request], Any]

_encode = msgspec.json.Encoder().encode


class RefusedError(ValueError):
    """A request that the exchange answers with an error; the text is its own."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(str(body))
        self.status, self.body = status, body


def answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(_encode(body), status, headers, media_type="application/json")


def route(path: str, ask: Answer, methods: tuple[str, ...] = ("GET",)) -> Route:
    """Return a route for a function that returns the JSON body, or a Response."""

    async def endpoint(request: Request) -> Response:
        try:
            found = ask(request)
            if isinstance(found, Awaitable):
                found = await found
        except RefusedError as refusal:
            return answer(refusal.body, refusal.status)
        return found if isinstance(found, Response) else answer(found)

    return Route(path, endpoint, methods=list(methods))
