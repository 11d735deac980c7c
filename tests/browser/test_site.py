"""Every page of the site in a real browser: no errors, charts are drawn, prices update, keys work."""

from __future__ import annotations

import json
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import WALLET
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.soak  # needs Chromium

AXE = (Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js").resolve()
PAGES = ["/", "/markets", "/markets?sort=volume", "/markets?q=rain", "/markets/rain-tomorrow"]
PAGES += ["/markets/rain-tomorrow?outcome=1", "/wallets", f"/wallets/{WALLET}", "/status", "/guides", "/guides/api"]
PAGES += ["/guides/stream", "/reference", "/reference/market_price", "/pricing", "/register", "/nowhere"]
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}


@contextmanager
def opened(browser, served, *, refused=0, **how):
    """Open a page; afterwards assert no console errors except `refused` 403s, and requests only to our own servers."""
    context = browser.new_context(**how)
    page = context.new_page()
    complaints, asked = [], []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in {"error", "warning"} else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    try:
        yield page
    finally:
        context.close()
    complaints = [each for each in complaints if "404" not in each or "nowhere" not in "".join(asked)]
    assert [each for each in complaints if "403" not in each or not refused] == []
    assert sum("403" in each for each in complaints) == refused
    assert [url for url in asked if not url.startswith((served.url, served.api_url))] == []


def price(market, outcome=0, **said):
    now = int(time.time() * 1000)
    record = {"market_id": market["market_id"], "outcome": outcome, "token_id": market["token_ids"][outcome]}
    record |= {"mid": 0.525, "bid": 0.52, "ask": 0.53, "spread": 0.01, "bid_size": 9, "ask_size": 4, "last": 0.52}
    return record | {"last_ts": now, "volume_24h_usd": 81234.5, "ts": now, "age_ms": 4, **said}


def drawn(page):
    """Return the number of colours on the chart's canvases; a blank one has one or two. Reads copies of them."""
    return page.evaluate(
        """() => {
          const colours = new Set();
          for (const canvas of document.querySelectorAll("#chart canvas")) {
            if (!canvas.width || !canvas.height) continue;
            const paper = new OffscreenCanvas(canvas.width, canvas.height);
            const copy = paper.getContext("2d", { willReadFrequently: true });
            copy.drawImage(canvas, 0, 0);
            const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
            for (let at = 0; at < data.length; at += 4) {
              if (data[at + 3]) colours.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
            }
          }
          return colours.size;
        }"""
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_shown_without_a_complaint_and_is_accessible(browser, served, scheme):
    with opened(browser, served, color_scheme=scheme) as page:
        for path in PAGES:
            page.goto(served.url + path)
            if page.locator("#chart").count():
                expect(page.locator("#chart")).to_have_attribute("data-state", "drawn" if "?" not in path else "empty")
            page.evaluate(AXE.read_text())
            found = page.evaluate("async () => (await axe.run()).violations")
            serious = [
                (each["id"], each["impact"], [node["html"][:200] for node in each["nodes"]][:3])
                for each in found
                if each["impact"] in {"serious", "critical"}
            ]
            assert serious == [], path


def test_nothing_is_wider_than_a_phone(browser, served):
    with opened(browser, served, **PHONE) as page:
        for path in PAGES:
            page.goto(served.url + path)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide == 0, path


OUT_OF_SIGHT = """() => {
  const beyond = (element) => {
    const { left, right, width } = element.getBoundingClientRect();
    return width > 0 && (right > innerWidth + 1 || left < -1);
  };
  const found = [...document.querySelectorAll(".bar nav a")].filter(beyond).map((link) => link.textContent);
  for (const cell of document.querySelectorAll("th, td")) {
    if (!beyond(cell)) continue;
    const scrolled = cell.closest(".wide, pre");
    const shown = scrolled && ["auto", "scroll"].includes(getComputedStyle(scrolled).overflowX)
      && getComputedStyle(scrolled).backgroundImage.includes("gradient");
    if (!shown) found.push(cell.textContent);
  }
  return found;
}"""


def test_on_a_phone_nothing_is_cut_without_a_sign_that_there_is_more(browser, served):
    with opened(browser, served, **PHONE) as page:
        for path in PAGES:
            page.goto(served.url + path)
            assert page.evaluate(OUT_OF_SIGHT) == [], path


def test_the_chart_is_drawn_from_the_data_feed_and_changes_its_bars(browser, served):
    with opened(browser, served) as page:
        page.goto(f"{served.url}/markets/rain-tomorrow")
        chart = page.locator("#chart")
        expect(chart).to_have_attribute("data-state", "drawn")
        assert drawn(page) > 10
        page.get_by_role("button", name="1 h", exact=True).click()
        expect(chart).to_have_attribute("data-bars", "25")
        page.get_by_role("button", name="Line").click()
        expect(page.get_by_role("button", name="Line")).to_have_attribute("aria-pressed", "true")
        assert drawn(page) > 10
        expect(page.locator("#depth svg path")).to_have_count(2)
        assert page.evaluate("getComputedStyle(document.querySelector('#depth .bid')).fill") != "none"


def test_a_price_a_trade_a_signal_and_the_book_change_while_one_looks(browser, served):
    market = served.markets["rain-tomorrow"]
    with opened(browser, served) as page:
        page.goto(f"{served.url}/markets/rain-tomorrow")
        expect(page.locator("#lamp")).to_have_attribute("data-on", "")
        expect(page.locator("#chart")).to_have_attribute("data-state", "drawn")
        served.tell("price", market, price(market, mid=0.615, bid=0.61, ask=0.62))
        expect(page.locator("#price")).to_have_text("62 %")
        expect(page.locator("#top dd").first).to_have_text("61.0¢")
        trade = {"id": "9", "market_id": market["market_id"], "token_id": market["token_ids"][0], "outcome": 0}
        trade |= {"price": 0.61, "size": 1234.5, "value_usd": 753.05, "side": "SELL", "tx_hash": None}
        served.tell("trade", market, trade | {"ts": int(time.time() * 1000)})
        expect(page.locator("#trades tr").first).to_contain_text("1,234.50")
        signal = {"id": "8", "type": "whale_alert", "market_id": market["market_id"], "outcome": 0, "score": 3.5}
        served.tell("signal", market, signal | {"direction": "up", "ts": int(time.time() * 1000)})
        expect(page.locator("#signals tr").first).to_contain_text("whale alert")
        key = {"key": market["market_key"]}
        served.conn.execute("update live_books set bid_sizes[1] = 777000000 where market_key = %(key)s", key)
        served.tell("orderbook", market, {"kind": "delta", "market_id": market["market_id"], "outcome": 0})
        expect(page.locator("#bids tr").first).to_contain_text("777")


def test_prices_change_in_a_list_and_go_on_after_one_looked_elsewhere(browser, served):
    market = served.markets["snow-this-winter"]
    cell = f'[data-live=bid][data-market="{market["market_id"]}"]'
    with opened(browser, served) as page:
        page.goto(f"{served.url}/markets")
        expect(page.locator("#lamp")).to_have_attribute("data-on", "")
        served.tell("price", market, price(market, bid=0.11, ask=0.12, mid=0.115))
        expect(page.locator(cell)).to_have_text("11.0¢")
        page.goto(f"{served.url}/pricing")
        page.go_back()
        expect(page.locator("#lamp")).to_have_attribute("data-on", "")
        served.tell("price", market, price(market, bid=0.13, ask=0.14, mid=0.135))
        expect(page.locator(cell)).to_have_text("13.0¢")


def test_a_page_that_is_left_is_told_nothing_more(browser, served):
    def live():
        with urllib.request.urlopen(f"{served.url}/health") as answer:
            return json.load(answer)["live"]

    with opened(browser, served) as page:
        page.goto(f"{served.url}/markets")
        expect(page.locator("#lamp")).to_have_attribute("data-on", "")
        assert live() == 1
        page.goto(f"{served.url}/pricing")
        market = served.markets["rain-tomorrow"]
        deadline = time.monotonic() + PATIENCE_S
        while live() and time.monotonic() < deadline:
            served.tell("price", market, price(market))
            page.wait_for_timeout(100)
        assert live() == 0


def test_a_key_is_got_and_used_for_a_first_call(browser, served):
    with opened(browser, served) as page:
        page.goto(served.url)
        page.get_by_role("link", name="Get a key").first.click()
        page.get_by_label("What is it for?").fill("my bot")
        page.get_by_label("Your email address").fill("me@example.com")
        page.get_by_role("button", name="Get the key").click()
        expect(page.locator("#key")).to_contain_text("psg_")
        page.get_by_role("button", name="Request a market").click()
        expect(page.locator("#first-answer")).to_contain_text("200 in")
        expect(page.locator("#first-answer")).to_contain_text('"market_id"')
        expect(page.locator("#first-answer")).to_contain_text("credits left")


def test_the_theme_is_chosen_and_remembered(browser, served):
    back = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, served, color_scheme="light") as page:
        page.goto(f"{served.url}/markets/rain-tomorrow")
        light = page.evaluate(back)
        page.get_by_role("button", name="Dark theme").click()
        assert page.evaluate(back) != light
        page.goto(f"{served.url}/pricing")
        assert page.evaluate(back) != light
        page.get_by_role("button", name="Light theme").click()
        assert page.evaluate(back) == light


def test_a_diagram_is_drawn_in_both_themes_and_is_text_without_scripts(browser, served):
    address = f"{served.url}/guides/architecture"
    with opened(browser, served, color_scheme="light") as page:
        page.goto(address)
        diagram, source = page.locator(".diagram svg").first, page.locator("code.language-mermaid").first
        for folder in ("orchestration/", "upstream/", "api/", "sql/", "presage_client"):
            expect(diagram).to_contain_text(folder)
        expect(source).to_be_hidden()
        light = diagram.get_attribute("id")
        page.get_by_role("button", name="Dark theme").click()
        expect(diagram).not_to_have_attribute("id", light)
        expect(diagram).to_contain_text("orchestration/")
    with opened(browser, served, java_script_enabled=False) as page:
        page.goto(address)
        expect(page.locator("code.language-mermaid").first).to_be_visible()


def test_all_is_reached_by_the_keyboard(browser, served):
    with opened(browser, served) as page:
        page.goto(f"{served.url}/markets")
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_have_text("Skip to content")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_have_attribute("id", "q")
        page.keyboard.type("snow")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=2).first).to_have_text("Results for “snow”")
        expect(page.get_by_role("link", name="Snow this winter?")).to_be_visible()


def test_pages_say_all_that_matters_without_any_script(browser, served):
    with opened(browser, served, java_script_enabled=False) as page:
        page.goto(f"{served.url}/markets/rain-tomorrow")
        expect(page.locator("#trades tr")).to_have_count(30)
        expect(page.locator("#bids tr")).to_have_count(15)
        page.goto(f"{served.url}/register")
        page.get_by_label("What is it for?").fill("my other bot")
        page.get_by_label("Your email address").fill("other@example.com")
        page.get_by_role("button", name="Get the key").click()
        expect(page.locator("#key")).to_contain_text("psg_")


def test_the_data_feed_is_what_a_strict_client_of_the_protocol_expects(browser, served):
    with opened(browser, served, refused=1) as page:
        page.goto(f"{served.url}/markets/rain-tomorrow")
        script = page.locator("script[type=module]").last.get_attribute("src").replace("market.js", "udf.js")
        told = page.evaluate(
            """async (script) => {
              const { Datafeed } = await import(script);
              const feed = new Datafeed("/udf", { every: 200, pass: document.body.dataset.pass });
              const config = await feed.onReady();
              const now = await feed.getServerTime();
              const symbol = await feed.resolveSymbol("rain-tomorrow");
              const widths = {};
              for (const resolution of config.supported_resolutions) {
                const { bars } = await feed.getBars(symbol, resolution, { from: now - 86400, to: now, countBack: 10 });
                widths[resolution] = bars.length;
              }
              const empty = await feed.getBars(symbol, "1", { from: 1000, to: 2000 });
              const marks = await feed.getMarks(symbol, now - 86400, now, "60");
              const times = await feed.getTimescaleMarks(symbol, now - 86400, now + 10 * 86400, "60");
              const bar = await new Promise((resolve) => feed.subscribeBars(symbol, "1", resolve, "a"));
              feed.unsubscribeBars("a");
              let unknown = "";
              try { await feed.resolveSymbol("nothing-of-that-name"); } catch (error) { unknown = error.message; }
              const late = Math.abs(now - Date.now() / 1000);
              return { symbol, widths, empty, marks: marks.length, times: times.length, bar, unknown, late };
            }""",
            script,
        )

    assert told["symbol"]["ticker"] == "rain-tomorrow"
    assert {resolution for resolution, count in told["widths"].items() if count == 10} >= {"1S", "1", "5", "15", "60"}
    assert min(told["widths"].values()) >= 1
    assert told["empty"]["noData"]
    assert told["times"] >= 1
    assert 0 < told["bar"]["close"] < 1
    assert told["unknown"] == "symbols: 403"  # not what the page shows
    assert told["late"] < 60
