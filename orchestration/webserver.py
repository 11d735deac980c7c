"""Dagster's web server, behind a password and checks against requests from other web pages.

python -m orchestration.webserver --host HOST --port PORT --workspace FILE

Dagster's own server runs any GraphQL mutation that reaches it, sent by GET or POST, by anybody and from any web page.
This one serves the same application. It is put together here rather than by Dagster's command, so that a release of
Dagster that moves its parts ends in an error and never in a server without the checks.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hmac
import re
import sys
import time
from typing import TYPE_CHECKING

import uvicorn
from cachetools import TTLCache
from dagster import DagsterInstance
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._utils.log import configure_loggers
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.version import __version__
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

from config import settings
from orchestration.storage_pools import keep_connections

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_NAMES = ("127.0.0.1", "[::1]", "localhost")
HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
OPEN_PATH = "/server_info"  # Dagster's version, for health checks
GRAPHQL_PATH = "/graphql"
MAX_WRONG, WRONG_TTL_S = 10, 60.0  # wrong passwords of one address, and how long they count
MAX_ADDRESSES = 10_000
STATEMENT_TIMEOUT_MS = 15_000  # as Dagster's own command has it


class Guard:
    """Refuses requests under foreign host names, from other web pages, and without the password.

    A browser sends its stored password along with requests of any page, so the password alone would not do.
    """

    def __init__(
        self, app: ASGIApp, password: str, hosts: Collection[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app, self._hosts = app, {*LOOPBACK_NAMES, *(host.lower() for host in hosts)}
        self._expected = f"{settings.DAGSTER_USER}:{password}".encode()
        self._wrong: TTLCache[str, int] = TTLCache(MAX_ADDRESSES, WRONG_TTL_S, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an allowed request on; answer any other with the reason."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._wrong_origin(scope, headers) or _wrong_method(scope, headers) or self._no_access(scope, headers)

        async def framed_nowhere(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Frame-Options"] = "DENY"
            await send(message)

        await (refusal or self._app)(scope, receive, framed_nowhere)

    def _wrong_origin(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        """Refuse a foreign Host, as after DNS rebinding, and requests of other pages."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        host = hosts[0].strip().lower() if len(hosts) == 1 else ""
        named = HOST.fullmatch(host)
        if named is None or named["name"] not in self._hosts:
            return PlainTextResponse("Unknown host: allow it with PRESAGE_DAGSTER_HOSTS", 421)
        own = {f"http://{host}", f"https://{host}"}  # a proxy may have ended TLS
        if any(origin.strip().lower() not in own for origin in origins):
            return PlainTextResponse("Origin: only Dagster's own pages may send requests", 403)
        # Sent by browsers only; a link from another page may be followed.
        site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode")
        followed = (scope.get("method"), mode, headers.get("sec-fetch-dest")) == ("GET", "navigate", "document")
        if site not in {"none", "same-origin"} and not followed:
            return PlainTextResponse("Sec-Fetch-Site: only Dagster's own pages may send requests", 403)
        return None

    def _no_access(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        """Refuse a request without the password, or after too many wrong ones."""
        if scope["type"] == "http" and scope["path"] == OPEN_PATH:
            return None
        given = headers.get("authorization")
        challenge = {"WWW-Authenticate": 'Basic realm="Dagster", charset="UTF-8"'}
        if given is None:
            return PlainTextResponse(f"User {settings.DAGSTER_USER} and its password are required", 401, challenge)
        address = (scope.get("client") or ("", 0))[0]
        if (wrong := self._wrong.get(address, 0)) >= MAX_WRONG:
            retry = {"Retry-After": f"{WRONG_TTL_S:.0f}"}
            return PlainTextResponse(f"More than {MAX_WRONG} wrong passwords within a minute", 429, retry)
        if not hmac.compare_digest(_credentials(given), self._expected):
            self._wrong[address] = wrong + 1
            return PlainTextResponse("Wrong user or password", 401, challenge)
        return None


def _wrong_method(scope: Scope, headers: Headers) -> PlainTextResponse | None:
    """Refuse GraphQL in a form that a browser sends for any page without asking first."""
    if scope["type"] != "http" or scope["path"] != GRAPHQL_PATH:
        return None
    if scope["method"] != "POST":
        refused = PlainTextResponse("Send GraphQL by POST", 405, {"Allow": "POST"})
        return refused if scope["query_string"] else None  # the page for trying queries has none
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return None if kind == "application/json" else PlainTextResponse("Content-Type: only application/json", 415)


def _credentials(authorization: str) -> bytes:
    scheme, _, encoded = authorization.partition(" ")
    try:
        return base64.b64decode(encoded.strip(), validate=True) if scheme.lower() == "basic" else b""
    except binascii.Error:
        return b""


def main(arguments: Sequence[str]) -> None:
    """Serve until asked to stop."""
    parser = argparse.ArgumentParser(prog="python -m orchestration.webserver")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workspace", required=True)
    parser.add_argument("--log-format", choices=("colored", "json"), default="json")
    given = parser.parse_args(arguments)
    password = settings.get().dagster_password
    if password is None:
        parser.error("PRESAGE_DAGSTER_PASSWORD is not set: Dagster's UI is never served without a password")

    configure_loggers(formatter=given.log_format, log_level="INFO")
    with DagsterInstance.get() as instance:
        keep_connections(instance, STATEMENT_TIMEOUT_MS)
        with WorkspaceProcessContext(instance, WorkspaceFileTarget([given.workspace]), __version__) as context:
            app = create_app_from_workspace_process_context(context, live_data_poll_rate=2000)
            guard = Guard(app, password.get_secret_value(), settings.get().dagster_host_names)
            # Addresses are the peers' own: X-Forwarded-For is believed from nobody.
            uvicorn.run(
                guard, host=given.host, port=given.port, log_level="warning", proxy_headers=False, server_header=False
            )


if __name__ == "__main__":
    main(sys.argv[1:])
