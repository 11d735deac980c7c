"""Every page as HTML and Markdown, from our API's responses."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from api.server.address import SITE_TOKEN
from api.site.app import create_app
from api.site.backend import ApiResponse
from api.site.formatting import NOTHING
from config import tunables as parameters
from orchestration.candles import activity, aggregates
from orchestration.wallets import leaderboards, positions
from tests.api.endpoints.test_shapes import book
from tests.api.site.conftest import Parsed, words_of
from tests.factories import go_live, insert, keep_alive
from tests.orchestration.wallets.chain import Chain, address

NOW = dt.datetime.now(dt.UTC)
ANN = "0x" + address("ann").hex()
MARKDOWN = {"Accept": "text/markdown"}
HOSTILE = "Will <script>alert(1)</script> | rain *fall*?"
PAGES = ["/", "/markets", "/markets/rain", "/wallets", f"/wallets/{ANN}", "/status", "/guides", "/guides/api"]
PAGES += [
    "/reference",
    "/reference/market_price",
    "/reference/register",
    "/reference/stream",
    "/pricing",
    "/register",
    "/recover",
    "/confirm",
]
RANKINGS = ["volume", "trades", "trending", "breaking", "new", "ending"]


@pytest.fixture
def market(conn, add_market, add_trades):
    """A market with all kinds of data that pages show."""
    soon = NOW + dt.timedelta(hours=5)
    of = {"event_id": "e1", "source": "simulated", "end_time": soon, "category": "weather", "tags": ["rain"]}
    row = add_market(
        "rain",
        question=HOSTILE,
        description="Yes, if it rains.",
        token_ids=["71", "72"],
        outcome_prices=[520_000, 480_000],
        **of,
    )
    add_market("rain-later", **of)
    add_trades(row, [{"price": "0.52", "size": 120}, {"price": "0.53", "size": 75, "side": -1}])
    price = {"market_key": row["market_key"], "outcome": 0, "mid": 525_000, "bid": 520_000, "ask": 530_000, "ts": NOW}
    insert(conn, "live_prices", price)
    insert(conn, "live_books", book(row["market_key"]))
    keep_alive(conn)
    signal = {"signal_id": 7, "type": "momentum", "value": 0.1, "threshold": 0.05, "score": 2, "direction": 1}
    insert(conn, "signals", {**signal, "ts": NOW, "market_key": row["market_key"], "outcome": 0, "window_s": 3900})
    chain = Chain(conn, start=NOW - dt.timedelta(hours=1))
    conn.execute("insert into chain_ranges (from_block, to_block, logs) values (1, 200, 0)")
    chain.head(100)
    chain.block(5, {"token": "71", "price": "0.4", "size": 100, "maker": "ann", "taker": "bob"})
    gap = {"kind": "trades", "from_ts": NOW - dt.timedelta(hours=2), "to_ts": NOW - dt.timedelta(hours=1)}
    insert(conn, "coverage_gaps", {**gap, "cause": "no feed running"})
    for name in ("signal_min_trades", "signal_min_volume_usd"):  # otherwise so little volume is not trending
        parameters.set_(conn, name, "1")
    for work in (aggregates.compute_stats, aggregates.rank, activity.bring_up_to_date):
        work(conn, dt.datetime.now(dt.UTC))
    for work in (positions.bring_up_to_date, leaderboards.write):
        work(conn, dt.datetime.now(dt.UTC))
    return row


def test_every_page_is_well_formed_loads_only_what_is_ours_and_says_the_same_in_markdown(site, market):
    for path in PAGES:
        html, markdown = site.get(path), site.get(path, headers=MARKDOWN)

        assert (html.status_code, markdown.status_code) == (200, 200)
        assert html.headers["Content-Type"] == "text/html; charset=utf-8"
        assert markdown.headers["Content-Type"] == "text/markdown; charset=utf-8"
        assert all("Accept" in answer.headers["Vary"].split(", ") for answer in (html, markdown))
        parsed = Parsed(html.text)
        assert parsed.inline == []
        assert [each for each in parsed.loaded if not each.startswith("/static/")] == []
        assert markdown.text.startswith("# ")
        # Every figure and name that the page shows is in the Markdown.
        said = set(words_of(markdown.text))
        shown = {word for word in parsed.words if re.search(r"[\d¢$%]|rain|RAIN", word)}
        assert {word for word in shown - said if not _only_in_html(word)} == set(), path


def _only_in_html(word):
    """Return whether only the HTML has a word: a relative time, or an abbreviation of what Markdown has in full."""
    return re.fullmatch(r"\d{1,2}|\d\d:\d\d:\d\d|[\dTZ:-]{20}", word) or "…" in word


def test_every_page_has_a_sibling_that_is_markdown(site, market):
    for path in PAGES:
        sibling = "/index.md" if path == "/" else f"{path}.md"

        found = site.get(sibling)

        assert (found.status_code, found.headers["Content-Type"]) == (200, "text/markdown; charset=utf-8")
        assert found.headers["Link"] == f'<{sibling}>; rel="alternate"; type="text/markdown"'
        assert f'href="{sibling}"' in site.get(path).text


def test_an_address_in_any_script_has_a_page(site, market):
    found = [site.get(path) for path in ("/markets/日本", "/markets/日本.md", "/日本", "/markets?q=日本")]

    assert [answer.status_code for answer in found] == [404, 404, 404, 200]
    assert found[0].headers["Link"].startswith("</markets/%E6%97%A5%E6%9C%AC.md>")


def test_every_link_within_the_site_leads_somewhere(site, market):
    links = {link.partition("#")[0] for path in PAGES for link in Parsed(site.get(path).text).links}

    answers = {link: site.get(link).status_code for link in links if link.startswith("/")}

    assert len(answers) > 80
    assert {link: status for link, status in answers.items() if status != 200} == {}


def test_a_market_shows_its_figures(site, market):
    page = Parsed(site.get("/markets/rain").text)

    said = " ".join(" ".join(page.said).split())
    assert HOSTILE in said
    for figure in ("53 %", "52.0¢", "53.0¢", "Buy", "Sell", "momentum", "Yes, if it rains.", "Rain later?"):
        assert figure in said
    assert "alert(1)</script>" not in site.get("/markets/rain").text.replace("&lt;/script&gt;", "")


def test_what_comes_from_outside_stays_text_in_markdown(site, market):
    told = site.get("/markets.md").text

    assert r"\<script\>alert(1)\</script\> \| rain \*fall\*?" in told
    assert re.search(r"(?<!\\)<script", told) is None


def test_an_outcome_is_looked_at_by_itself(site, market, conn):
    go_live(conn, market, 1, mid=475_000)

    told = site.get("/markets/rain.md?outcome=1").text

    assert "**No: 48 %**" in told
    assert site.get("/markets/rain?outcome=7").status_code == 404


def test_a_resolved_market_shows_what_it_pays_and_no_price(site, market, conn):
    paid = "status = 'RESOLVED', winning_outcome = 0, outcome_prices = '{1000000,0}'"
    conn.execute(f"update markets set {paid} where slug = 'rain'")

    pages = [Parsed(site.get(path).text) for path in ("/markets/rain", "/markets?sort=volume")]
    said = [" ".join(" ".join(page.said).split()) for page in pages]

    assert "Yes pays $1.00" in said[0]
    assert "pays $1.00" in said[1]
    assert "**Yes pays $1.00**" in site.get("/markets/rain.md").text
    assert f"| pays $1.00 | {NOTHING} | {NOTHING} |" in site.get("/markets.md?sort=volume").text
    assert "**No pays $0.00**" in site.get("/markets/rain.md?outcome=1").text
    assert f"Best bid {NOTHING} Best ask {NOTHING} Spread {NOTHING}" in said[0]
    assert "53 %" not in " ".join(said)


def test_markets_are_ranked(site, market):
    for sort in RANKINGS:
        assert "/markets/rain" in site.get(f"/markets.md?sort={sort}").text
        assert site.get(f"/markets?sort={sort}").status_code == 200


@pytest.mark.parametrize("page", ["/markets.md?sort=volume", "/markets.md?sort=active"])
def test_a_list_is_ordered_by_the_volumes_that_it_shows(site, market, conn, add_market, add_trades, page):
    other = add_market("snow", question="Will it snow?")
    add_trades(other, [{"price": "0.5", "size": 40}])
    now = dt.datetime.now(dt.UTC)
    for work in (aggregates.compute_stats, aggregates.rank, activity.bring_up_to_date):
        work(conn, now)
    # By now the other one has more, and nothing has been ranked again.
    conn.execute("update market_activity set value_24h = 999000000 where market_key = %s", [other["market_key"]])

    rows = [line for line in site.get(page).text.splitlines() if line.startswith("| [")]
    volumes = [float(re.search(r"\$([\d,.]+) \|", row)[1].replace(",", "")) for row in rows if "$" in row]

    assert len(volumes) >= 2
    assert volumes == sorted(volumes, reverse=True)


def test_markets_are_searched_and_filtered(site, market, add_market):
    add_market("snow", category="winter", status="CLOSED")

    assert "/markets/snow" in site.get("/markets.md?q=snow").text
    assert "/markets/rain" not in site.get("/markets.md?q=snow").text
    assert "/markets/snow" in site.get("/markets.md?category=winter").text
    assert "/markets/rain" not in site.get("/markets.md?category=winter").text
    assert "/markets/snow" not in site.get("/markets.md?status=ACTIVE").text
    assert "No markets match" in site.get("/markets.md?q=hail").text
    assert "/markets/rain-later" in site.get("/markets.md?tag=rain").text


def test_a_long_list_goes_on(site, add_market):
    for number in range(60):
        add_market(f"number-{number}")

    first = site.get("/markets.md").text
    on = re.search(r"\[More markets\]\((\S+)\)", first)[1]
    second = site.get(on).text

    slugs = re.findall(r"/markets/(number-\d+)\.md", first + second)
    assert len(set(slugs)) == len(slugs) == 60
    assert "More markets" not in second


def test_a_wallet_is_shown_and_found_by_its_address(site, market):
    told = site.get(f"/wallets/{ANN}.md").text

    assert "| Bought | $40.00 |" in told
    assert site.get(f"/wallets?address={ANN.upper().replace('0X', '0x')}").url.path == f"/wallets/{ANN}"
    assert site.get("/wallets?address=ann").status_code == 400
    assert site.get("/wallets/ann").status_code == 404


def test_the_status_names_stages_and_what_is_missing(site, market):
    told = site.get("/status.md").text

    assert "| ingestion |" in told
    assert "no feed running" in told


def test_what_is_not_there_is_said_in_the_form_asked_for(site):
    html, markdown = site.get("/nowhere"), site.get("/nowhere.md")

    assert (html.status_code, markdown.status_code) == (404, 404)
    assert "<h1>404" in html.text
    assert markdown.text.startswith("# 404")
    for path in ("/markets/nothing", "/markets/%2e%2e", "/guides/nothing", "/reference/nothing", "/markets/a%00b"):
        assert site.get(path).status_code == 404
    assert site.put("/markets").status_code == 405


def test_pages_are_not_sent_again_to_whoever_has_them(site, market):
    first = site.get("/pricing")

    again = site.get("/pricing", headers={"If-None-Match": first.headers["ETag"]})

    assert (again.status_code, again.content) == (304, b"")
    other = site.get("/pricing", headers={"If-None-Match": first.headers["ETag"], **MARKDOWN})
    assert other.status_code == 200


def test_while_the_api_is_away_documents_remain_and_data_says_so(site, api):
    api.away = True

    away = site.get("/markets")

    assert (away.status_code, away.headers["Retry-After"]) == (503, "2")
    assert "is not available" in away.text
    assert "is not available" in site.get("/").text
    assert "is not available" in site.get("/status.md").text
    assert [site.get(path).status_code for path in ("/", "/status", "/guides/api", "/pricing", "/register")] == [
        200
    ] * 5


def test_a_mistake_of_ours_is_a_page_without_a_trace(made_site, monkeypatch):
    monkeypatch.setattr(type(made_site.backend), "get", lambda *_, **__: 1 / 0)
    site = TestClient(create_app(made_site), raise_server_exceptions=False)

    html, told = site.get("/markets"), site.get("/api/ticker")

    assert (html.status_code, told.status_code) == (500, 500)
    assert "<h1>500" in html.text
    assert "ZeroDivision" not in html.text + told.text
    assert told.json()["error"]["code"] == "internal"


def test_the_source_of_the_data_is_named_on_every_page(site, market):
    assert all("Simulated data" in site.get(path).text for path in PAGES)
    assert "Simulated data" in site.get("/index.md").text


def test_agents_are_told_of_every_page_and_every_link_leads_to_markdown(site):
    told = site.get("/llms.txt").text

    assert told.startswith("# Presage\n\n> ")
    links = re.findall(r"\]\(http://site\.example(\S+?)\)", told)
    assert len(links) > 60
    found = {link: site.get(link) for link in links}
    assert {link for link, answer in found.items() if answer.status_code not in {200, 503}} == set()
    kinds = {answer.headers["Content-Type"].partition(";")[0] for answer in found.values()}
    assert kinds == {"text/markdown", "text/plain"}


def test_all_there_is_to_be_read_comes_at_once(site, documents):
    told = site.get("/llms-full.txt").text

    assert all(f"# {guide.title.partition('`')[0]}" in told for guide in documents["guides"].by_name.values())
    assert all(f"{each.method} {each.path}" in told for each in documents["reference"].operations.values())


def test_the_reference_has_an_example_of_every_operation(documents):
    for operation in documents["reference"].operations.values():
        told = documents["reference"].markdown(operation, "http://api.example")
        line = re.search(r"```sh\n(.*)\n```", told)[1]
        assert ("http://api.example" in line) or ("ws://api.example" in line)
        assert "{" not in re.sub(r" -d '[^']*'", "", line)
        for example in re.findall(r"```json\n(.*?)\n```", told, re.DOTALL):
            json.loads(example)


def test_a_key_is_given_shown_once_and_works(site, client, conn):
    form = {"app_name": "my bot", "email": "me@example.com", "use_case": ""}

    given = site.post("/register", data=form)

    assert (given.status_code, given.headers["Cache-Control"]) == (200, "no-store")
    key = re.search(r'<code id="key">(psg_[\w-]+)</code>', given.text)[1]
    assert client.ask("/v1/markets", key=key).status_code == 200
    again = site.post("/register", data=form)
    assert again.status_code == 400
    assert "This address already has an active key" in again.text
    assert 'value="my bot"' in again.text
    wrong = site.post("/register", data={"app_name": "x", "email": "nobody"})
    assert 'aria-invalid="true"' in wrong.text


def test_a_lost_key_is_recovered_by_mail(site, made_site, monkeypatch):
    asked, answers = (
        [],
        {
            "/recover": (202, {"message": "A mail is sent"}),
            "/confirm": (200, {"key": "psg_new", "message": "Store it"}),
        },
    )

    async def request(self, method, path, **how):
        asked.append((method, path, json.loads(how["body"])))
        status, data = answers[path]
        return ApiResponse(status, {}, json.dumps(data).encode())

    monkeypatch.setattr(type(made_site.backend), "request", request)

    assert "A mail is sent" in site.post("/recover", data={"email": "me@example.com"}).text
    link = site.get("/confirm?token=abc")
    assert (asked, 'value="abc"' in link.text) == ([("POST", "/recover", {"email": "me@example.com"})], True)
    done = site.post("/confirm", data={"token": "abc"})

    assert (done.headers["Cache-Control"], '<code id="key">psg_new</code>' in done.text) == ("no-store", True)
    assert asked[-1] == ("POST", "/confirm", {"token": "abc"})
    answers["/confirm"] = (400, {"detail": "x", "hint": None, "errors": [{"name": "token", "detail": "It was used"}]})
    assert site.post("/confirm", data={"token": "abc"}).status_code == 400
    used = site.post("/confirm", data={"token": "abc"}).text
    assert ("It was used" in used, 'value="abc"' in used) == (True, False)
    answers["/confirm"] = (429, {"detail": "Too many", "hint": None})
    assert 'value="abc"' in site.post("/confirm", data={"token": "abc"}).text


@pytest.mark.parametrize("secret", ["psg_" + "k-_" * 14 + "k", "whsec_" + "aB3" * 14 + "="])
def test_a_key_where_none_belongs_is_not_repeated(made_site, api, monkeypatch, secret):
    site = TestClient(create_app(made_site, requests_a_second=1000), raise_server_exceptions=False)
    paths = [f"/market/{secret}", f"/markets?q={secret}", f"/markets?key={secret}", f"/{secret}", f"/guides/{secret}"]
    answers = [site.get(path + more) for path in paths for more in ("", "&x=1" if "?" in path else ".md")]
    others = (f"/wallets/{secret}", f"/reference/{secret}", f"/udf/symbols?symbol={secret}", f"/api/{secret}")
    answers += [site.get(path) for path in (*others, f"/static/{secret}/site.css", f"/register?{secret}=1")]
    answers.append(site.post("/register", data={"app_name": secret, "email": secret}))
    answers.append(site.post("/recover", data={"email": secret}))
    monkeypatch.setattr(type(made_site.backend), "get", None)
    answers.append(site.get(f"/markets?key={secret}"))

    assert {answer.status_code for answer in answers} == {200, 400, 403, 404, 500}
    assert [answer.url for answer in answers if secret in f"{answer.text}{answer.headers}".replace("%3D", "=")] == []
    assert not [request.url for request in api.asked if secret in str(request.url)]


def test_a_form_that_is_none_is_refused(site):
    json_sent = site.post("/register", json={"app_name": "x", "email": "x@example.com"})
    large = site.post("/register", data={"app_name": "x" * 20_000, "email": "x@example.com"})

    assert (json_sent.status_code, large.status_code) == (415, 413)


def test_it_is_told_to_the_api_for_whom_a_key_is_asked(site, api):
    site.post("/register", data={"app_name": "x", "email": "x@example.com"}, headers={"X-Forwarded-For": "203.0.113.9"})

    assert api.asked[-1].headers["X-Forwarded-For"] == "203.0.113.9, testclient"


def test_the_site_shows_the_api_its_token_when_it_names_an_address(made_site, api):
    with TestClient(create_app(replace(made_site, token="a token of 32 characters, at least"))) as site:
        site.post("/register", data={"app_name": "x", "email": "x@example.com"})

    assert api.asked[-1].headers[SITE_TOKEN] == "a token of 32 characters, at least"


def test_a_browser_is_told_to_let_pages_do_no_more_than_they_need(site):
    policy = dict(
        part.strip().split(" ", 1) for part in site.get("/pricing").headers["Content-Security-Policy"].split(";")
    )

    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["connect-src"] == "'self' http://api.example"


def test_files_are_kept_for_good_under_their_version_only(site, documents):
    assets = documents["assets"]

    found = site.get(assets.url("site.css"))
    old = site.get("/static/old/site.css")

    assert (found.status_code, found.headers["Cache-Control"]) == (200, "public, max-age=31536000, immutable")
    assert (old.status_code, old.headers["Cache-Control"]) == (200, "no-cache")
    assert site.get(assets.url("..")).status_code == 404
    assert len(site.get(assets.url("lightweight-charts.js"), headers={"Accept-Encoding": "identity"}).content) > 100_000


def test_a_diagram_is_text_with_a_script_that_other_pages_do_not_load(site, documents):
    page, markdown = site.get("/guides/architecture"), site.get("/guides/architecture.md")

    assert '<code class="language-mermaid">flowchart TD\n' in page.text
    assert "benchmarks --&gt; cli\n" in page.text
    assert "```mermaid\nflowchart TD\n" in markdown.text
    assert "benchmarks --> cli\n" in markdown.text
    for name in ("mermaid.js", "diagrams.js"):
        assert page.text.count(f'src="{documents["assets"].url(name)}"') == 1
        assert site.get(documents["assets"].url(name)).status_code == 200
    assert "style-src 'self' 'unsafe-inline';" in page.headers["Content-Security-Policy"]
    for path in ("/guides", "/guides/api", "/reference/market_price"):
        other = site.get(path)
        assert "mermaid" not in other.text
        assert "unsafe" not in other.headers["Content-Security-Policy"]
