"""Access to the MCP endpoints, the cost of calls, and limits."""

from __future__ import annotations

import asyncio
import itertools

from fastmcp import FastMCP

from api.site.app import create_app
from api.site.mcp import sse, streamable
from api.site.mcp.access import guarded
from api.site.mcp.app import Mcp
from api.site.mcp.holder import Holder
from config.settings import Settings
from tests.api.conftest import generous
from tests.api.endpoints import test_shapes
from tests.api.site.asking import message, over_http, over_sse, raw, serving, site
from tests.patience import PATIENCE_S

full = test_shapes.full
WALLET = "0x" + "5d" * 20

# --- Keys and credits


def test_a_call_costs_its_session_what_the_endpoint_costs(backend, client, conn, full):
    mine, theirs = generous(conn, "a@example.com", credits_month=100), generous(conn, "b@example.com")

    async def ask():
        async with site(backend) as url, over_sse(url, mine) as one, over_sse(url, theirs) as other:
            await asyncio.gather(
                one.call_tool("wallet_pnl", {"address": WALLET}), other.call_tool("market", {"id": "full"})
            )
            return await one.call_tool("stats", {}), await other.call_tool("stats", {})

    (one, other) = asyncio.run(ask())

    assert one.meta["presage/credits"] == {
        "cost": "1",
        "remaining": "89",
        "reset": one.meta["presage/credits"]["reset"],
    }
    assert other.meta["presage/credits"]["remaining"] == str(100_000 - 2)
    assert {key for _, path, key in backend.transport.asked if "pnl" in path} == {mine}
    assert {key for _, path, key in backend.transport.asked if path.endswith("/full")} == {theirs}


def test_a_call_that_cannot_be_paid_says_so(backend, client, conn):
    poor = generous(conn, "a@example.com", credits_month=1)

    async def ask():
        async with site(backend) as url, over_sse(url, poor) as session:
            return [await session.call_tool("stats", {}) for _ in range(2)]

    paid, unpaid = asyncio.run(ask())

    assert not paid.is_error
    assert unpaid.is_error
    assert unpaid.content[0].text.startswith("quota_exhausted: ")


def test_a_mistake_is_told_with_what_would_be_right(backend, client):
    async def ask():
        async with site(backend) as url, over_sse(url, client.key) as session:
            return [
                (await session.call_tool(name, given)).content[0].text
                for name, given in [
                    ("market", {"id": "nowhere"}),
                    ("recent_trades", {"limit": 9999}),
                    ("recent_trades", {"colour": "red"}),
                    ("no_such_tool", {}),
                ]
            ]

    missing, much, unknown, no_tool = asyncio.run(ask())

    assert missing.startswith("not_found: The market does not exist")
    assert "Allowed: 1 to 500" in much
    assert unknown.startswith("unknown_parameter: ")
    assert no_tool == "Unknown tool: 'no_such_tool'"


def test_server_sent_events_want_a_valid_key(backend):
    async def ask():
        async with site(backend) as url, raw(url) as http:
            return [await http.get(f"/sse{query}") for query in ("", "?key=", "?key=psg_wrong", "/?key=psg_wrong")]

    answers = asyncio.run(ask())

    assert [answer.status_code for answer in answers] == [401] * 4
    assert {answer.json()["error"]["code"] for answer in answers} == {"invalid_api_key"}


def test_a_wrong_key_opens_nothing_not_even_what_anyone_may_ask(backend):
    async def ask():
        async with site(backend) as url, raw(url, Authorization="Bearer psg_wrong") as http:
            return await http.post("/api/mcp", json=message("tools/list"))

    answer = asyncio.run(ask())

    assert answer.status_code == 401


def test_a_callers_headers_go_no_further(backend, client):
    """Otherwise the API could be called with another key than the one that was checked."""

    async def ask():
        async with site(backend) as url, raw(url, **{"X-Debug-Token": "secret", "Cookie": "a=b"}) as http:
            call = message("tools/call", name="stats", arguments={})
            return (await http.post("/api/mcp", json=call)).json()

    assert not asyncio.run(ask())["result"].get("isError")
    assert {key for _, _, key in backend.transport.asked} == {client.key}  # the site's own


# --- Bounds


def test_a_message_is_bounded(backend):
    body = b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 70_000 + b'"}'

    async def ask():
        async with site(backend) as url, raw(url) as http:
            paths = "/api/mcp", "/sse/unknown/messages/?session_id=0"
            return [(await http.post(path, content=body)).status_code for path in paths]

    assert asyncio.run(ask()) == [413, 413]


def test_only_our_hosts_and_no_pages_of_others_are_answered(backend):
    page = "https://app.example.com"
    expected = {
        (): 200,
        ("Host", "localhost:8085"): 200,
        ("Host", "evil.example"): 421,
        ("Host", "mcp.example.com"): 200,
        ("Host", "site.example.com"): 200,
        ("Origin", "http://evil.example"): 403,
        ("Origin", "null"): 403,
        ("Origin", page): 200,
    }
    given = {"mcp_hosts": "mcp.example.com", "mcp_origins": page, "public_site_url": "https://site.example.com"}

    async def ask():
        async with site(backend, **given) as url, raw(url) as http:
            for header in expected:
                headers = dict([header] if header else [])
                answer = await http.post("/api/mcp", json=message("tools/list"), headers=headers)
                events = await http.get("/sse", headers=headers)
                yield header, answer, events

    async def collected():
        return [each async for each in ask()]

    answers = asyncio.run(collected())

    assert {header: answer.status_code for header, answer, _ in answers} == expected
    # An allowed host or origin is asked for its key.
    by_sse = {header: 401 if status == 200 else status for header, status in expected.items()}
    assert {header: events.status_code for header, _, events in answers} == by_sse
    allowed = {header: answer.headers.get("access-control-allow-origin") for header, answer, _ in answers}
    assert allowed["Origin", page] == page
    assert allowed["Origin", "http://evil.example"] is None


def test_blanks_around_a_header_are_no_part_of_it():
    seen = {}

    async def app(scope, receive, send):
        seen.update(scope["headers"])

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    headers = [(b"host", b"localhost"), (b"mcp-name", b"  health \t")]
    scope = {"type": "http", "method": "POST", "scheme": "http", "path": "/api/mcp", "headers": headers}
    asyncio.run(guarded(app, set(), [])(scope, receive, None))

    assert seen[b"mcp-name"] == b"health"


def test_a_get_says_how_to_ask(backend):
    async def ask():
        async with site(backend) as url, raw(url) as http:
            return await http.get("/api/mcp"), await http.post("/sse")

    mcp, events = asyncio.run(ask())

    assert (mcp.status_code, mcp.headers["allow"]) == (405, "POST")
    assert (events.status_code, events.headers["allow"]) == (405, "GET")
    assert mcp.json()["error"]["code"] == "method_not_allowed"


def test_sessions_are_bounded_and_their_room_comes_free(backend, client, conn, monkeypatch):
    monkeypatch.setattr(sse, "MAX_SESSIONS_PER_KEY", 1)
    other = generous(conn, "other@example.com")
    third = generous(conn, "third@example.com")

    async def ask():
        async with site(backend, mcp_sessions=2) as url, raw(url) as http:
            async with over_sse(url, client.key), over_sse(url, other):
                same_key = await http.get(f"/sse?key={client.key}")
                too_many = await http.get(f"/sse?key={third}")
            async with over_sse(url, client.key) as again:
                return same_key, too_many, (await again.list_tools()).tools

    same_key, too_many, tools = asyncio.run(ask())

    assert (same_key.status_code, too_many.status_code) == (429, 503)
    assert same_key.headers["retry-after"] == "10"
    assert tools


def test_a_session_ends_after_a_time_without_a_word(backend, client, monkeypatch):
    monkeypatch.setattr(sse, "IDLE_S", 0.2)

    async def ask():
        async with site(backend) as url, raw(url) as http, http.stream("GET", f"/sse?key={client.key}") as events:
            said = "".join([part async for part in events.aiter_text()])
            place = said.split("data: ")[1].split()[0]
            return place, await http.post(place, json=message("tools/list"))

    place, late = asyncio.run(ask())

    assert place.startswith("/sse/")
    assert late.status_code == 404


def test_a_session_ends_when_the_site_stops_but_not_before_its_message_is_answered():
    async def stop():
        sent = []

        async def send(message):
            sent.append(message)

        busy, idle = (sse.SseSession(Holder("key"), asyncio.Event().wait, send) for _ in range(2))
        waiting = [asyncio.create_task(each.received()) for each in (busy, idle)]
        await asyncio.sleep(0)
        busy.message_received()
        for each in (busy, idle):
            each.drain()
        first, _ = await asyncio.wait(waiting, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        await busy.sent({"type": "http.response.body", "body": b"an answer"})
        async with asyncio.timeout(PATIENCE_S):
            return first == {waiting[1]}, await asyncio.gather(*waiting), busy.over, sent

    first, ends, over, sent = asyncio.run(stop())

    assert first
    assert ends == [{"type": "http.disconnect"}] * 2
    assert over
    assert len(sent) == 1


def test_one_who_does_not_read_is_let_go_and_is_owed_only_so_much(backend, client, monkeypatch):
    monkeypatch.setattr(sse, "SEND_TIMEOUT_S", 6.0)
    monkeypatch.setattr(sse, "MAX_PENDING", 2)  # soon reached, however slow the machine: long before the timeout

    async def ask():
        async with (
            site(backend) as url,
            raw(url) as http,
            http.stream("GET", f"/sse?key={client.key}") as events,
        ):
            said = events.aiter_text()  # kept referenced: a collected generator closes the connection
            place = (await anext(said)).split("data: ")[1].split()[0]

            async def say(method, number, **params):
                await asyncio.sleep(0.01)
                return (await http.post(place, json=message(method, number, **params))).status_code

            client_info = {"name": "test", "version": "1"}
            await say("initialize", 0, protocolVersion="2025-11-25", capabilities={}, clientInfo=client_info)
            heard = []
            for number in range(2000):  # each answer has 150 kB
                heard.append(await say("tools/list", number))
                if heard[-1] == 404:
                    break
            return heard

    heard = asyncio.run(ask())

    assert [status for status, _ in itertools.groupby(heard)] == [202, 429, 404]


def test_the_newest_revision_lists_no_tools_for_a_call(backend, client, monkeypatch):
    """The SDK lists them to compare headers with the tool's schema: sixty tools for each call."""
    listed = []

    async def ask():
        async with site(backend) as url, over_http(url, client.key) as session:
            assert session.protocol_version == "2026-07-28"
            await session.list_tools()
            monkeypatch.setattr(FastMCP, "list_tools", lambda *_: listed.append(1))
            return await session.call_tool("recent_trades", {"limit": 1})

    assert not asyncio.run(ask()).is_error
    assert listed == []


def test_calls_at_work_are_bounded(backend, client, monkeypatch):
    monkeypatch.setattr(streamable, "MAX_CONCURRENT_CALLS", 0)

    async def ask():
        async with site(backend) as url, raw(url) as http:
            return await http.post("/api/mcp", json=message("tools/list"))

    answer = asyncio.run(ask())

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_the_log_of_requests_has_no_key_whatever_was_answered(made_site, caplog):
    caplog.set_level("INFO", "uvicorn.access")
    mcp = Mcp(made_site.backend, made_site.guides, Settings(_env_file=None))

    async def ask():
        async with serving(create_app(made_site, mcp, requests_a_second=1)) as url, raw(url) as http:
            refused = [
                await http.get("/sse?key=psg_secret", headers={"Host": host}) for host in ("localhost", "a.example")
            ]
            return [each.status_code for each in [*refused, *[await http.get("/sse?key=psg_secret") for _ in range(9)]]]

    statuses = asyncio.run(ask())

    assert [*statuses[:2], statuses[-1]] == [401, 421, 429]
    assert "GET /sse" in caplog.text
    assert "psg_secret" not in caplog.text
