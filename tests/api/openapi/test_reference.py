"""The reference page: complete, self-contained, and restricted by a Content-Security-Policy."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright import sync_api

from api.openapi import document as openapi
from api.openapi.page import ReferencePage
from api.openapi.schema_html import kind, limits, prose
from tests.api.conftest import generous, serving
from tests.patience import PATIENCE_S

DOCUMENT = json.loads(openapi.encoded())
CHROMIUM = Path("/usr/bin/chromium")


class Parsed(HTMLParser):
    """Collects a page's ids, links and loaded resources."""

    VOID = frozenset({"meta", "input"})

    def __init__(self, html):
        super().__init__()
        self.ids, self.links, self.loaded, self.open = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if tag == "a" else []
        self.loaded += [given[name] for name in ("src", "srcset", "data") if name in given]
        self.loaded += [given["href"]] if tag == "link" else []
        self.loaded += [name for name in given if name.startswith("on") or name == "style"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def parsed():
    return Parsed(ReferencePage(DOCUMENT).html.decode())


def test_every_operation_and_record_is_on_the_page_and_every_link_leads_somewhere(parsed):
    operations = {each["operationId"] for methods in DOCUMENT["paths"].values() for each in methods.values()}
    records = {f"schema-{name}" for name in DOCUMENT["components"]["schemas"]}

    assert operations | records <= set(parsed.ids)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert {link for link in parsed.links if link.removeprefix("#") not in parsed.ids} == {"/openapi.json"}
    assert parsed.open == []


def test_it_loads_nothing_and_is_allowed_nothing_else(client, parsed):
    answer = client.simulate_get("/docs")

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert parsed.loaded == []
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    for kind_of in ("style-src", "script-src"):
        assert re.fullmatch(r"'sha256-[A-Za-z0-9+/=]{44}'", policy[kind_of])
    assert client.simulate_get("/docs", headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304


def test_what_a_document_says_is_text_not_markup():
    document = {
        **DOCUMENT,
        "info": {**DOCUMENT["info"], "title": "<script>alert(1)</script>", "description": "a `<b>` & <i>\n\nmore"},
    }

    html = ReferencePage(document).html.decode()

    assert html.count("<script") == 1
    assert "<p>a <code>&lt;b&gt;</code> &amp; &lt;i&gt;</p><p>more</p>" in html
    assert "Parsed" not in html


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "integer"}, "integer"),
        ({"$ref": "#/components/schemas/Market"}, '<a href="#schema-Market">Market</a>'),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "number or null"),
        ({"enum": ["a", "b"]}, "<code>a</code> | <code>b</code>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "object of integer"),
        ({"type": "string", "anyOf": [{"format": "date-time"}, {"pattern": "^1$"}]}, "string"),
        ({}, "any"),
    ],
)
def test_a_type_is_said_in_words(schema, said):
    assert kind(schema) == said


def test_limits_are_said_in_words():
    assert limits({"minimum": 1, "maximum": 9, "default": 5}) == (
        "at least <code>1</code>, at most <code>9</code>, default <code>5</code>"
    )
    assert limits({"anyOf": [{"format": "date-time"}]}) == "<code>date-time</code>"
    assert prose("") == ""


@pytest.mark.soak
def test_a_browser_shows_it_without_a_complaint_and_tries_a_request(database_url, conn, tmp_path):
    assert CHROMIUM.exists(), "`make browser` installs it"
    key = generous(conn, "someone@example.com")
    with serving(database_url, PRESAGE_METERING_DIR=str(tmp_path)) as server, sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page()
        complaints = []
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{server.url}/docs")
        page.fill("#key", key)
        page.locator("#time summary", has_text="Try it").click()
        page.locator("#time button").click()
        answer = page.locator("#time .answer")
        sync_api.expect(answer).to_contain_text("200 in", timeout=PATIENCE_S * 1000)
        sync_api.expect(answer).to_contain_text('"unix_ms"')
        page.fill("#find", "sentiment")
        assert page.locator("nav li:visible").count() == 1
        browser.close()

    assert complaints == []
    assert [url for url in asked if not url.startswith(server.url)] == []
