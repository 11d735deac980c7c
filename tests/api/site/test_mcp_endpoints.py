"""The MCP endpoints by the official client: both protocol eras, both transports, and the API behind them."""

from __future__ import annotations

import asyncio
import itertools
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from api.site.app import create_app
from api.site.mcp import sse, streamable
from api.site.mcp.app import Mcp
from api.site.mcp.doors import guarded
from api.site.mcp.tools import PUBLIC
from settings import Settings
from tests.api import test_exchange, test_shapes
from tests.api.conftest import generous
from tests.api.site.asking import backend_of, message, over_http, over_sse, raw, serving, site
from tests.factories import insert

full, sandbox, told = test_shapes.full, test_exchange.sandbox, test_exchange.told
DOCUMENTATION = Path(__file__).parents[3] / "docs/mcp.md"
WALLET = "0x" + "5d" * 20
CHANGING = {
    "age_ms",
    "ts",
    "last_data_at",
    "lag_s",
    "checked_at",
    "timestamp",
    "unix",
    "unix_ms",
    "utc",
    "ist",
    "detail",
    "since",
}
ARGUMENTS = {
    "event_markets": {"id": "12"},
    "category_markets": {"slug": "weather"},
    "positions": {"wallet": WALLET},
    "closed_positions": {"wallet": WALLET},
    "create_webhook": {"url": "https://8.8.8.8/hook", "events": ["trade"]},
    "change_webhook": {"events": ["signal"]},
    "export_manifest": {"topic": "trades", "day": "2026-11-20"},
} | dict(test_shapes.QUERIES)
MODERN = {
    "protocolVersion": "2026-07-28",
    "clientInfo": {"name": "test", "version": "1"},
    "clientCapabilities": {},
}
MADE = {"create_webhook": "id", "test_webhook": "delivery_id"}  # what others are then asked about
DOCUMENTS = {"search_documentation", "read_documentation"}


@pytest.fixture
def backend(client):
    return backend_of(client)


def arguments(tool, **known):
    """Sensible ones: of the market that has everything, of a wallet, and of what earlier calls have made."""
    usual = {"id": "full", "address": WALLET} | known
    given = {name: value for name, value in usual.items() if name in tool.input_schema["properties"]}
    return given | ARGUMENTS.get(tool.name, {})


@pytest.fixture
def exported(conn):
    row = {"topic": "trades", "day": "2026-11-20", "part": 0, "rows": 1, "bytes": 9, "sha256": b"\x01" * 32}
    for format_ in ("parquet", "csv"):
        file = {"format": format_, "file": f"a.{format_}", "complete": True, "created_at": "2026-11-21T00:00:00Z"}
        insert(conn, "exports", row | file)


def steady(value):
    """A value without what changes from one moment to the next."""
    if isinstance(value, dict):
        return {name: steady(one) for name, one in value.items() if name not in CHANGING}
    return [steady(one) for one in value] if isinstance(value, list) else value


# --- Every tool


def test_every_tool_gives_what_its_endpoint_gives(backend, client, full, exported, told):
    differing, called = {}, []

    async def ask_all():
        known = {}
        async with site(backend) as url, over_sse(url, client.key) as session:
            listed = [tool for tool in (await session.list_tools()).tools if tool.name not in DOCUMENTS]
            for tool in sorted(listed, key=lambda tool: tool.annotations.destructive_hint):
                about_webhooks = "webhook" in tool.name or tool.name == "redeliver"
                given = arguments(tool, **known if about_webhooks else {})
                result = await session.call_tool(tool.name, given)
                method, path, key = backend.transport.asked[-1]
                asked_for_us = backend.transport.answers[-1]
                (block,) = result.content
                structured = result.structured_content
                if "x-fastmcp-wrap-result" in tool.output_schema:
                    structured = structured["result"]
                if method == "GET":
                    answer = client.simulate_get(path, headers={"X-API-Key": client.key})
                    same = steady(structured) == steady(answer.json)
                else:  # asked twice, it would be another webhook
                    same = structured == asked_for_us.json()
                    known |= {name: structured["id"] for made, name in MADE.items() if made == tool.name}
                if result.is_error or key != client.key or not same or block.text != asked_for_us.text:
                    differing[tool.name] = asked_for_us.status_code, given, block.text[:300]
                called.append(tool.name)

    asyncio.run(ask_all())

    assert differing == {}
    assert len(called) >= 69


def test_structured_answers_keep_to_their_schemas(backend, client, full):
    """The official client checks this too; here for what it does not."""

    async def ask():
        async with site(backend) as url, over_http(url, client.key) as session:
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            for name in ("market", "prices", "recent_trades", "pipeline_status", "markets_by_timeframe"):
                result = await session.call_tool(name, arguments(tools[name]))
                yield name, [*Draft202012Validator(tools[name].output_schema).iter_errors(result.structured_content)]

    async def collected():
        return {name: errors async for name, errors in ask()}

    assert not any(asyncio.run(collected()).values())


# --- Eras and transports


@pytest.mark.parametrize(("mode", "negotiated"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_anyone_may_list_tools_call_them_and_read_the_documentation(backend, full, mode, negotiated):
    async def ask():
        async with site(backend) as url, over_http(url, mode=mode) as session:
            tools = {tool.name for tool in (await session.list_tools()).tools}
            documents = {str(found.uri): found for found in (await session.list_resources()).resources}
            page = await session.read_resource("docs://mcp")
            stats = await session.call_tool("stats", {})
            found = await session.call_tool(
                "search_documentation", {"query": "without losing anything resume_from", "limit": 5}
            )
            whole = await session.call_tool("read_documentation", {"page": "stream"})
            none = await session.call_tool("read_documentation", {"page": "../README"})
            return session.protocol_version, tools, documents, page, stats, found, whole, none

    version, tools, documents, page, stats, found, whole, none = asyncio.run(ask())

    assert version == negotiated
    assert tools <= PUBLIC | DOCUMENTS
    assert len(tools) == 11
    assert {"docs://api", "docs://stream", "docs://openapi"} <= documents.keys()
    assert documents["docs://stream"].title == "The stream"
    assert "text/markdown" in page.contents[0].mime_type
    assert page.contents[0].text.startswith("# For language models")
    assert stats.structured_content["total_markets"] == 1
    assert "docs://stream" in {passage["uri"] for passage in found.structured_content["result"]}
    assert "resume_from" in whole.content[0].text
    assert none.is_error


def test_each_handshake_revision_is_spoken(backend):
    versions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]

    async def ask():
        client_info = {"name": "test", "version": "1"}
        async with site(backend) as url, raw(url) as http:
            asked = [
                message("initialize", protocolVersion=version, capabilities={}, clientInfo=client_info)
                for version in versions
            ]
            return [(await http.post("/api/mcp", json=each)).json()["result"] for each in asked]

    answers = asyncio.run(ask())

    assert [answer["protocolVersion"] for answer in answers] == versions
    assert answers[0]["serverInfo"]["name"] == "Presage"
    assert answers[0]["capabilities"].keys() >= {"tools", "resources"}
    assert "docs://mcp" in answers[0]["instructions"]


def test_the_key_opens_all_tools_on_both_endpoints(backend, client, full):
    async def ask():
        async with site(backend) as url:
            async with over_http(url, client.key) as session:
                listed = {tool.name for tool in (await session.list_tools()).tools}
                market = await session.read_resource("market://full")
                templates = (await session.list_resource_templates()).resource_templates
            async with over_sse(url, client.key) as session:
                return listed, {tool.name for tool in (await session.list_tools()).tools}, market, templates

    by_http, by_sse, market, templates = asyncio.run(ask())

    assert by_http == by_sse
    assert len(by_http) >= 71
    assert '"slug":"full"' in market.contents[0].text.replace(" ", "")
    assert [template.uri_template for template in templates] == ["market://{id}"]


def test_tools_are_listed_by_topic_and_the_others_can_still_be_called(backend, client, full):
    async def ask():
        async with site(backend) as url, over_sse(url, client.key, topics="Prices,signals") as session:
            listed = {tool.name for tool in (await session.list_tools()).tools}
            return listed, await session.call_tool("market_stats", {"id": "full"})

    listed, called = asyncio.run(ask())

    assert {"market_price", "market_signals", "search_documentation"} <= listed
    assert not listed & {"markets", "market_stats", "wallet_pnl", "udf_config"}
    assert not called.is_error


def test_lists_may_be_kept(backend):
    async def ask():
        meta = {f"io.modelcontextprotocol/{name}": value for name, value in MODERN.items()}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
        async with site(backend) as url, raw(url, **headers) as http:
            return (await http.post("/api/mcp", json=message("tools/list", _meta=meta))).json()

    answer = asyncio.run(ask())["result"]

    assert (answer["ttlMs"], answer["cacheScope"]) == (300_000, "public")


def test_the_sites_own_application_has_both_endpoints(made_site, client, full):
    """Behind all that it does to every request: headers, pace, compression."""
    mcp = Mcp(made_site.backend, made_site.guides, Settings(_env_file=None))

    async def ask():
        async with serving(create_app(made_site, mcp, requests_a_second=1000)) as url:
            async with over_http(url) as session:
                anyone = await session.call_tool("stats", {})
                openapi = await session.read_resource("docs://openapi")
            async with over_sse(url, client.key) as session:
                return anyone, openapi, await session.call_tool("market", {"id": "full"})

    anyone, openapi, market = asyncio.run(ask())

    assert anyone.structured_content["total_markets"] == 1
    assert len(openapi.contents[0].text) > 100_000
    assert market.structured_content["slug"] == "full"


def test_the_example_of_the_documentation_runs(backend, client, add_market, capsys):
    add_market("rain")
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENTATION.read_text(), re.DOTALL)
    example = {"__name__": "example"}
    exec(code, example)

    async def ask():
        async with site(backend) as url:
            await example["main"](url, client.key)

    asyncio.run(ask())

    assert capsys.readouterr().out == "['Rain?']\n"


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

    assert missing.startswith("not_found: There is no such market")
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
    """Else the API could be asked under another key than the one that was checked."""

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
    # One that may come in is asked for its key.
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
    monkeypatch.setattr(sse, "MOST_OF_A_KEY", 1)
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


def test_one_who_does_not_read_is_let_go_and_is_owed_only_so_much(backend, client, monkeypatch):
    monkeypatch.setattr(sse, "UNREAD_S", 4.0)
    monkeypatch.setattr(sse, "MOST_OWED", 8)

    async def ask():
        async with (
            site(backend) as url,
            raw(url) as http,
            http.stream("GET", f"/sse?key={client.key}") as events,
        ):
            said = events.aiter_text()  # held on to: a generator that is let go closes the connection
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
    """The SDK would, to compare headers with the tool's schema: sixty tools for each call."""
    listed = []

    async def ask():
        async with site(backend) as url, over_http(url, client.key) as session:
            assert session.protocol_version == "2026-07-28"
            await session.list_tools()
            from fastmcp import FastMCP

            monkeypatch.setattr(FastMCP, "list_tools", lambda *_: listed.append(1))
            return await session.call_tool("recent_trades", {"limit": 1})

    assert not asyncio.run(ask()).is_error
    assert listed == []


def test_calls_at_work_are_bounded(backend, client, monkeypatch):
    monkeypatch.setattr(streamable, "MOST_AT_WORK", 0)

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
