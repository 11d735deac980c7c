"""What the API is measured beside: `gunicorn benchmarks.api.apps:hello`; and the API itself without its cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import falcon

from api.data.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

WORD = b'{"hello":"world"}'


class Hello:
    """The least that a server of this kind can do."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:  # noqa: ARG002 (Falcon's)
        """Say it."""
        resp.data = WORD


class Forgetful(Cache):
    """Asks every time: what an endpoint takes when nothing is remembered."""

    def get(
        self,
        question: Hashable,  # noqa: ARG002 (a cache is told)
        seconds: float,  # noqa: ARG002 (likewise)
        ask: Callable[..., tuple[bytes, str]],
        *about: Any,
    ) -> tuple[bytes, str]:
        return ask(*about)


def _hello() -> Any:
    app = falcon.App()
    app.add_route("/hello", Hello())
    return app


def _uncached() -> Any:
    from api import app
    from api.data import waiting
    from config import settings

    waiting.install()
    service = app.service_of(settings.get())
    service.cache = Forgetful()
    return app.create_app(service)


MAKERS = {"hello": _hello, "uncached": _uncached}


def __getattr__(name: str) -> Any:
    """Make the app that a server asks for."""
    if name in MAKERS:
        return MAKERS[name]()
    raise AttributeError(name)
