"""Comparison apps: `gunicorn benchmarks.api.apps:hello`; and the API itself without its cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import falcon

from api.data.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from api.data.cache import Response

WORD = b'{"hello":"world"}'


class Hello:
    """The minimal work of a server of this kind."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:  # noqa: ARG002 (Falcon's)
        """Respond."""
        resp.data = WORD


class UncachedCache(Cache):
    """A cache that never hits, to measure uncached endpoints."""

    def get(
        self,
        question: Hashable,  # noqa: ARG002 (a cache is given them)
        seconds: float,  # noqa: ARG002 (likewise)
        ask: Callable[..., Response],
        *about: Any,
    ) -> Response:
        """Compute the response."""
        return ask(*about)


def _hello() -> Any:
    app = falcon.App()
    app.add_route("/hello", Hello())
    return app


def _uncached() -> Any:
    from api.app import create_app
    from api.data import waiting
    from api.startup import build_service
    from config import settings

    waiting.install()
    service = build_service(settings.get())
    service.cache = UncachedCache()
    return create_app(service)


MAKERS = {"hello": _hello, "uncached": _uncached}


def __getattr__(name: str) -> Any:
    """Create the app that a server requests."""
    if name in MAKERS:
        return MAKERS[name]()
    raise AttributeError(name)
