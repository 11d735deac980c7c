"""The site in this process, over our real API on a database that is rolled back."""

from __future__ import annotations

import asyncio
import re
import threading
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from api.openapi import document as openapi
from api.server.address import Proxies
from api.site.app import create_app
from api.site.assets import Assets
from api.site.backend import Backend
from api.site.guides import Guides
from api.site.live import LiveHub
from api.site.reference import Reference
from api.site.site import Site
from tests.api.site import asking

ROOT = Path(__file__).parents[3]
TIERS = [
    ("free", 5000, 5, 1, 5, 5),
    ("pro", 100_000, 25, 3, 2500, 50),
    ("enterprise", None, None, None, None, None),
]
COLUMNS = ("tier", "credits_month", "credits_burst", "max_keys", "max_webhooks", "max_connections")


class InProcess(httpx.AsyncBaseTransport):
    """Transport over falcon's test client; requests run one at a time because they share a connection."""

    def __init__(self, client):
        self._client, self._turn = client, threading.Lock()
        self.away = False
        self.asked = []

    async def handle_async_request(self, request):
        body = await request.aread()
        return await asyncio.to_thread(self._ask, request, body)

    def _ask(self, request, body):
        if self.away:
            raise httpx.ConnectError("away")
        with self._turn:
            self.asked.append(request)
            answer = self._client.simulate_request(
                request.method,
                request.url.path,
                query_string=request.url.query.decode(),
                headers=dict(request.headers),
                body=body or None,
                remote_addr="127.0.0.1",
            )
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


@pytest.fixture(scope="session")
def documents():
    """Parts that all tests share because building them is slow."""
    return {"assets": Assets(ROOT / "node_modules"), "guides": Guides(), "reference": Reference(openapi.document())}


@pytest.fixture
def backend(client):
    """Backend over the test client's API; its transport records requests."""
    transport = asking.InProcess(client.app)
    made = Backend("http://api", asking.FixedCredentials(client.key), transport=transport)
    made.transport = transport
    return made


@pytest.fixture
def api(client):
    return InProcess(client)


@pytest.fixture
def made_site(client, api, documents):
    known = asking.FixedCredentials(client.key)
    backend = Backend("http://api", known, transport=api)
    return Site(
        backend=backend,
        hub=LiveHub(backend, known),
        proxies=Proxies(),
        tiers=[dict(zip(COLUMNS, tier, strict=True)) for tier in TIERS],
        source="simulated",
        api_url="http://api.example",
        **documents,
    )


@pytest.fixture
def site(made_site):
    """A test client of the site."""
    return TestClient(create_app(made_site, requests_a_second=1000), base_url="http://site.example")


class Parsed(HTMLParser):
    """A parsed page: its text, ids, links and loaded resources."""

    VOID = frozenset({"meta", "input", "link", "br", "hr", "img", "circle", "path"})

    def __init__(self, html):
        super().__init__()
        self.ids, self.links, self.loaded, self.inline, self.open, self.said = [], [], [], [], [], []
        self.feed(html)
        assert self.open == [], self.open
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if tag == "a" else []
        self.loaded += [given["src"]] if "src" in given else []
        self.loaded += [given["href"]] if tag == "link" and given["rel"] != "alternate" else []
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        if "main" in self.open and "script" not in self.open:
            self.said.append(data)

    @property
    def words(self):
        """Words and figures of the page's content."""
        return re.findall(r"\w[\w.,:¢$%…-]*", " ".join(self.said))


def words_of(markdown):
    """Words and figures of Markdown, without escapes; a backslash in a code span is none."""
    text = re.sub(r"(`[^`]*`)|\\(.)", r"\1\2", markdown)
    return re.findall(r"\w[\w.,:¢$%…-]*", text)
