"""Third-party MCP clients, in `make soak`: the inspector, the conformance tests, and version 1 of the Python SDK."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.site import mcp_fixture
from tests.api.site.asking import serving, site

pytestmark = pytest.mark.soak  # `make test` asks with version 2 of the SDK: test_mcp_endpoints.py

ROOT = Path(__file__).parents[3]
MODULES = ROOT / "tests/clients/mcp/node_modules"
NODE = MODULES / "node/bin/node"  # newer than the machine's may be
INSPECTOR = MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
CONFORMANCE = MODULES / "@modelcontextprotocol/conformance/dist/index.js"

# Why a scenario is about nothing that we serve. Each answer stands alone: nothing is asked of the client meanwhile, and
# nothing told before the answer.
ASKS_BACK = {
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
}
TELLS_MEANWHILE = {
    "tools-call-with-logging",
    "tools-call-with-progress",
    "resources-subscribe",
    "resources-unsubscribe",
}
SESSIONS = {"server-sse-multiple-streams"}
# Tools that want more of the client before they answer.
NEEDS_MORE = {
    f"input-required-result-{what}"
    for what in (
        *("basic-elicitation", "basic-sampling", "basic-list-roots", "request-state", "multiple-input-requests"),
        *("multi-round", "non-tool-request", "result-type", "tampered-state", "capability-check"),
        *("missing-input-response", "validate-input"),
    )
}
# Of a scenario that passes otherwise: a tool that needs a capability of the client.
NEEDS_CAPABILITY = {
    "server-stateless:sep-2575-server-rejects-undeclared-capability",
    "server-stateless:sep-2575-missing-capability-http-400",
}
# What a server of prices and documents has not, and what the fixture shows that we could serve.
BY_NAME = {
    *("completion-complete", "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource"),
    *("prompts-get-with-image", "resources-read-text", "resources-read-binary", "resources-templates-read"),
    *("tools-call-image", "tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content"),
}
NOT_SERVED = {
    "2025-11-25": ASKS_BACK | TELLS_MEANWHILE | SESSIONS,
    "2026-07-28": {"tools-call-with-progress"} | NEEDS_MORE | NEEDS_CAPABILITY,
}


async def run(*command, cwd=None):
    """Return a program's exit code and output."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd
    )
    try:
        said, complained = await asyncio.wait_for(process.communicate(), 90)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, said.decode(), complained.decode()


# --- The inspector


def inspected(backend, path, *arguments):
    """Return the inspector's output for one endpoint."""

    async def ask():
        async with site(backend) as url:
            return await run(NODE, INSPECTOR, "--cli", url + path, *arguments)

    code, said, complained = asyncio.run(ask())
    assert code == 0, said + complained
    return json.loads(said)


def test_the_inspector_lists_and_calls_what_anyone_may_ask(backend, add_market):
    add_market("rain")

    http = "--transport", "http"
    listed = inspected(backend, "/api/mcp", *http, "--method", "tools/list", "--strict")["tools"]
    called = inspected(backend, "/api/mcp", *http, "--method", "tools/call", "--tool-name", "stats")

    assert {"stats", "pipeline_status", "search_documentation"} <= {tool["name"] for tool in listed}
    assert called["structuredContent"]["total_markets"] == 1


def test_the_inspector_lists_and_calls_everything_by_server_sent_events(backend, client, add_market):
    add_market("rain")

    sse = f"/sse?key={client.key}", "--transport", "sse"
    listed = inspected(backend, *sse, "--method", "tools/list", "--strict")["tools"]
    call = "--method", "tools/call", "--tool-name", "market_summary", "--tool-arg", "id=rain"
    called = inspected(backend, *sse, *call)

    assert len(listed) >= 64
    assert called["structuredContent"]["market_id"].startswith("0x")


# --- The conformance tests


async def conformance(url, revision, not_served, folder):
    """Run a revision's required tests; fail on unexpected failures and on unexpected passes."""
    known = folder / "known.yml"
    known.write_text(json.dumps({"server": sorted(not_served)}))
    asked = "server", "--url", f"{url}/api/mcp", "--requirements", revision, "--expected-failures", known
    return await run(NODE, CONFORMANCE, *asked, cwd=folder)


@pytest.mark.parametrize("revision", NOT_SERVED)
def test_our_own_server_conforms_in_all_that_it_serves(backend, revision, tmp_path):
    async def ask():
        async with site(backend) as url:
            return await conformance(url, revision, NOT_SERVED[revision] | BY_NAME, tmp_path)

    code, said, complained = asyncio.run(ask())

    assert code == 0, said[-5000:] + complained


@pytest.mark.parametrize("revision", NOT_SERVED)
def test_a_server_with_all_kinds_of_content_conforms_as_we_serve_it(revision, tmp_path):
    async def ask():
        async with serving(mcp_fixture.app()) as url:
            return await conformance(url, revision, NOT_SERVED[revision], tmp_path)

    code, said, complained = asyncio.run(ask())

    assert code == 0, said[-5000:] + complained


# --- The older Python client

OLDER = """
import asyncio, json, sys
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamablehttp_client

async def ask(transport):
    async with transport as (read, write, *_), ClientSession(read, write) as session:
        about = await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        result = await session.call_tool("stats", {})
        page = await session.read_resource("docs://api")
        assert page.contents[0].text.startswith("# The API")
        return [about.protocolVersion, len(tools), result.structuredContent["total_markets"]]

async def main(url, key):
    transports = streamablehttp_client(f"{url}/api/mcp"), sse_client(f"{url}/sse?key={key}")
    print(json.dumps([await ask(transport) for transport in transports]))

asyncio.run(main(*sys.argv[1:]))
"""


def test_the_python_client_of_the_older_kind_speaks_to_both_endpoints(backend, client, add_market, tmp_path):
    """Version 1 of the SDK, in its own environment: this one has version 2."""
    add_market("rain")
    python = tmp_path / "older/bin/python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "older"], check=True)
    install = [ROOT / ".venv/bin/uv", "pip", "install", "-q", "--python", python, "mcp<2"]
    subprocess.run(install, check=True, timeout=300)
    script = tmp_path / "older.py"
    script.write_text(OLDER)

    async def ask():
        async with site(backend) as url:
            return await run(python, script, url, client.key)

    code, said, complained = asyncio.run(ask())

    assert code == 0, complained
    by_http, by_sse = json.loads(said)
    assert by_http == ["2025-11-25", 13, 1]  # with the two of the documentation
    assert (by_sse[0], by_sse[2]) == ("2025-11-25", 1)
    assert by_sse[1] >= 64
