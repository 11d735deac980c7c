"""Errors raised before any page or tool is reached have the site's own format."""

from __future__ import annotations

import asyncio

import pytest

from api.site.app import create_app
from api.site.mcp.app import Mcp
from config.settings import Settings
from tests.api.site import asking

BIG = b"x" * 70_000


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "code"),
    [
        ("POST", "/api/mcp", {"headers": {"Host": "evil.example"}}, 421, "misdirected"),
        ("POST", "/api/mcp", {"headers": {"Origin": "http://evil.example"}}, 403, "forbidden"),
        ("POST", "/api/mcp", {"content": BIG}, 413, "body_too_large"),
        ("POST", "/sse/nowhere/messages/", {"content": BIG}, 413, "body_too_large"),
        ("GET", "/sse", {"headers": {"Host": "evil.example"}}, 421, "misdirected"),
    ],
)
def test_what_the_guard_refuses_is_said_as_the_site_says_it(backend, method, path, sent, status, code):
    async def ask():
        async with asking.site(backend) as url, asking.raw(url) as http:
            return await http.request(method, path, **sent)

    answer = asyncio.run(ask())

    error = answer.json()["error"]
    assert (answer.status_code, error["code"], answer.headers["cache-control"]) == (status, code, "no-store")
    assert set(error) == {"code", "message", "hint"}
    assert error["message"]
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("path", "query", "status", "said"),
    [
        ("/markets", b"q=\xff\xfe", 200, '"\ufffd\ufffd"'),
        ("/markets", b"q=\xc3\xbc", 200, '"ü"'),
        ("/live", b"markets=\xff", 400, '"invalid_parameter"'),
        ("/nowhere", b"\xff=1", 404, "There is no such page"),
        ("/api/nowhere", b"\xff", 404, '"known_endpoints"'),
        ("/sse", b"key=\xff", 401, '"invalid_api_key"'),
    ],
)
def test_a_query_of_raw_bytes_is_read_as_utf_8_with_replacement(made_site, caplog, path, query, status, said):
    """Clients escape them, and most servers refuse them; one may pass them on."""
    app = create_app(made_site, Mcp(made_site.backend, made_site.guides, Settings(_env_file=None)))
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
    }
    scope |= {"query_string": query, "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": None}
    answer = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        answer.append(message)

    asyncio.run(app(scope, receive, send))

    assert answer[0]["status"] == status
    assert said in b"".join(message["body"] for message in answer[1:]).decode()
    assert scope["query_string"].isascii(), "the server writes it into its log"
