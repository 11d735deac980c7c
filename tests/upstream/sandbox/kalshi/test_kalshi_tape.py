"""Recordings of Kalshi: what was recorded is played again, and what cannot be used is listed with the reason."""

import gzip
import json

import pytest

from tests.patience import until
from tests.upstream.sandbox.kalshi.conftest import (
    MINUTE,
    SECOND,
    START_MS,
    converse,
    get,
    open_tickers,
    play,
    rest_books,
    truth,
    walk,
)
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.sandbox.tape.folder import UnplayableError

REST = "/trade-api/v2"
TICKER = "KXFED-27APR-T4.25"
MARKET = {
    "ticker": TICKER,
    "event_ticker": "KXFED-27APR",
    "market_type": "binary",
    "status": "active",
    "result": "",
    "title": "Will the upper bound be above 4.25%?",
    "yes_sub_title": "Above 4.25%",
    "open_time": "2025-10-13T14:00:00Z",
    "close_time": "2027-04-28T17:55:00Z",
    "updated_time": "2026-04-09T14:07:28.591885Z",
    "last_price_dollars": "0.2800",
    "volume_fp": "10155.43",
    "open_interest_fp": "2020.47",
    "price_level_structure": "linear_cent",
    "price_ranges": [{"start": "0.0000", "end": "1.0000", "step": "0.0100"}],
    "strike_type": "greater",
    "floor_strike": 4.25,
}
SNAPSHOT = {"market_ticker": TICKER, "market_id": "f5ed", "yes_dollars_fp": [["0.2700", "31.54"]]}
DELTA = {"market_ticker": TICKER, "market_id": "f5ed", "price_dollars": "0.7100", "delta_fp": "25.00", "side": "no"}


def frame(at_ms, kind, msg, seq=1, sid=1, **more):
    return json.dumps({"at_ms": at_ms, "frame": {"type": kind, "sid": sid, "seq": seq, "msg": msg}, **more})


def put(folder, **files):
    """Write files; `capture` is made of its lines."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        body = "\n".join(content) + "\n" if name.startswith("capture") else json.dumps(content)
        (folder / f"{name}.json").write_text(body)
    return folder


def played(folder):
    """Return a sandbox that has played a folder in its own thread."""
    return KalshiSandbox(tape=folder, start_ms=START_MS, speed=0)


def account(http, sandbox):
    found = http.get(f"{sandbox.url}/sandbox/tape").json()
    return {one["file"]: one for one in found["files"]}, found["unread"]


def finish(http, sandbox):
    until(lambda: http.get(f"{sandbox.url}/sandbox/status").json()["ended"])


def test_a_recorded_simulation_is_played_as_it_was(sandbox, http, tmp_path):
    play(sandbox, 5 * SECOND)
    tickers = open_tickers(http, sandbox)
    folder = tmp_path / "tape"
    folder.mkdir()
    for nth, (path, query) in enumerate(
        [("/series", {}), ("/events", {}), ("/markets", {"limit": 1000}), ("/markets/trades", {"limit": 1000})]
    ):
        body = get(http, sandbox, path, **query)
        text = json.dumps({"at_ms": sandbox.exchange.now_ms, "path": REST + path, "body": body})
        (folder / f"{nth}.json.gz").write_bytes(gzip.compress(text.encode()))

    async def talk(listener):
        await listener.subscribe("orderbook_delta", market_tickers=tickers, use_yes_price=True)
        await listener.subscribe("trade", "market_lifecycle_v2", "multivariate_market_lifecycle")
        await listener.play(MINUTE)

    heard = converse(sandbox, http, talk)
    sent = {"cmd": "subscribe", "params": {"channels": ["orderbook_delta"], "use_yes_price": True}}
    lines = [{"at_ms": START_MS, "sent": sent}]
    lines += [{"at_ms": one.get("sending_ts_ms", START_MS), "frame": json.dumps(one)} for one in heard.messages]
    (folder / "socket.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    books = rest_books(http, sandbox, tickers)
    trades = get(http, sandbox, "/markets/trades", limit=1000)["trades"]

    with played(folder) as again:
        finish(http, again)
        assert rest_books(http, again, tickers) == books
        assert [one["trade_id"] for one in get(http, again, "/markets/trades", limit=1000)["trades"]] == [
            one["trade_id"] for one in trades
        ]
        files, unread = account(http, again)
        markets = {one["ticker"]: one for one in walk(http, again, "/markets", "markets", limit=1000)}

    capture = files["socket.jsonl"]
    answers = sum(one["type"] in ("subscribed", "ok") for one in heard.messages)
    assert unread == {}
    assert capture["used"] == len(lines) - answers
    assert capture["left_out"]["an answer to a command"]["rows"] == answers
    assert all("left_out" not in files[f"{nth}.json.gz"] for nth in range(4))
    for one in heard.of("market_lifecycle_v2"):
        if one["msg"]["event_type"] == "settled":
            assert markets[one["msg"]["market_ticker"]]["status"] == "finalized"
        if one["msg"]["event_type"] == "created":
            assert one["msg"]["market_ticker"] in markets


def test_recorded_bodies_are_played_and_the_times_are_shifted(http, tmp_path):
    at = 1_781_159_489_000
    folder = put(
        tmp_path / "tape",
        market={"market": MARKET},
        capture=[
            frame(at, "orderbook_snapshot", SNAPSHOT),
            frame(at + 500, "orderbook_delta", DELTA, 2),
            frame(
                at + 600,
                "orderbook_snapshot",
                {**SNAPSHOT, "yes_dollars_fp": [["0.2700", "30.00"]]},
                1,
                1,
                connection=2,
            ),
            frame(at + 700, "orderbook_delta", DELTA, 3),
            frame(at + 800, "orderbook_delta", {**DELTA, "delta_fp": "-99.00", "side": "yes"}, 2, connection=2),
        ],
    )
    with played(folder) as exchange:
        finish(http, exchange)
        market = get(http, exchange, f"/markets/{TICKER}")["market"]
        lines = [line for line in truth(http, exchange) if line["kind"] == "orderbook_delta"]
        files, _ = account(http, exchange)
        event = get(http, exchange, "/events/KXFED-27APR")["event"]

    assert [(line["msg"]["side"], line["msg"]["delta_fp"], line["ts_ms"]) for line in lines] == [
        ("yes", "31.54", START_MS),
        ("no", "25.00", START_MS + 500),
        ("yes", "-1.54", START_MS + 600),
        ("no", "-25.00", START_MS + 600),
    ]
    assert market["floor_strike"] == 4.25
    assert market["volume_fp"] == "10155.43"
    assert market["yes_bid_dollars"] == "0.2700"
    assert market["close_time"] > "2027-09"
    assert event["series_ticker"] == "KXFED"
    assert {reason: one["rows"] for reason, one in files["capture.json"]["left_out"].items()} == {
        "a change without its snapshot": 1,
        "out of step: a level below 0; the market waits for its next snapshot": 1,
    }


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", "malformed: not an object"),
        (json.dumps({"at_ms": "x", "frame": {}}), "malformed time"),
        (json.dumps({"at_ms": 1_781_159_489_000, "frame": "{"}), "malformed frame: not JSON"),
        (json.dumps({"at_ms": 1_781_159_489_000, "frame": "[" * 9_000}), "malformed frame: not JSON"),
        (json.dumps({"at_ms": 1_781_159_489_000, "frame": [1]}), "malformed frame: not an object"),
        (json.dumps({"at_ms": 1_781_159_489_000, "frame": {"msg": {}}}), "malformed frame: no type"),
        (json.dumps({"at_ms": 1_781_159_489_000, "frame": {"type": [], "msg": {}}}), "malformed frame: no type"),
        (json.dumps({"at_ms": 1_781_159_489_000, "connection": -1, "frame": {}}), "malformed connection"),
        (frame(1_781_159_489_000, "trade", {"market_ticker": TICKER}), "malformed message"),
        (frame(1_781_159_489_000, "trade", {"market_ticker": "NONE"}), "of a market that nothing describes"),
        (frame(1_781_159_489_000, "trade", {"market_ticker": ["A"]}), "malformed ticker"),
        (frame(1_781_159_489_000, "ticker", {"market_ticker": TICKER, "price_dollars": "2"}), "malformed price"),
        (
            frame(1_781_159_489_000, "orderbook_snapshot", {**SNAPSHOT, "no_dollars_fp": [["0.5", "1", "2"]]}),
            "malformed message",
        ),
        (frame(1_781_159_489_000, "orderbook_snapshot", {**SNAPSHOT, "no_dollars_fp": 7}), "malformed message"),
        (
            frame(1_781_159_489_000, "orderbook_snapshot", {**SNAPSHOT, "no_dollars_fp": [["0.5", "1e999"]]}),
            "malformed size",
        ),
        (
            frame(1_781_159_489_000, "market_lifecycle_v2", {"market_ticker": "A", "event_type": "created"}),
            "malformed ticker",
        ),
        (
            frame(1_781_159_489_000, "market_lifecycle_v2", {"market_ticker": TICKER, "close_ts": 10**30}),
            "malformed time",
        ),
        (frame(1_781_159_489_000, "event_lifecycle", {"event_ticker": "x y"}), "malformed ticker"),
    ],
)
def test_a_line_that_cannot_be_used_is_counted_with_the_reason(http, tmp_path, line, reason):
    good = frame(1_781_159_489_000, "orderbook_snapshot", SNAPSHOT)
    with played(put(tmp_path / "tape", market={"market": MARKET}, capture=[good, good, line])) as exchange:
        finish(http, exchange)
        files, _ = account(http, exchange)

    assert files["capture.json"]["left_out"] == {reason: {"rows": 1, "first_row": 3}}
    assert files["capture.json"]["used"] == 2


def test_a_file_that_cannot_be_used_is_listed_with_the_reason(http, tmp_path):
    folder = put(
        tmp_path / "tape",
        market={"market": MARKET},
        again={"markets": [MARKET, {**MARKET, "ticker": "a b"}, 7, {**MARKET, "ticker": "X", "status": "odd"}]},
        book={"orderbook_fp": {"yes_dollars": [], "no_dollars": []}},
        known={
            "path": f"{REST}/markets/{TICKER}/orderbook?depth=2",
            "body": {"orderbook_fp": {"yes_dollars": [["0.1", "2"]]}},
        },
        odd_book={"path": f"{REST}/markets/{TICKER}/orderbook", "body": {"orderbook_fp": []}},
        series={"series": {"ticker": "KXODD", "tags": 5}},
        status={"exchange_active": True},
        grids={"markets": [{**MARKET, "ticker": "Y", "price_ranges": [{"start": "1", "end": "0", "step": "0"}]}]},
        trades={"trades": [{"ticker": "NONE", "trade_id": "1", "created_time": "2026-01-01"}, {"ticker": TICKER}]},
    )
    (folder / "picture.png").write_bytes(b"\x89PNG\0\0")
    (folder / "cut.json.gz").write_bytes(gzip.compress(json.dumps({"market": MARKET, "a": "b" * 999}).encode())[:60])
    (folder / "rows.csv").write_text("a,b\n1,2\n")

    with played(folder) as exchange:
        finish(http, exchange)
        files, unread = account(http, exchange)
        book = get(http, exchange, f"/markets/{TICKER}/orderbook")["orderbook_fp"]
        lines = http.get(f"{exchange.url}/sandbox/tape").json()["lines"]

    assert book == {"yes_dollars": [["0.1000", "2.00"]], "no_dollars": []}
    # Of two rows about one market the first file's counts, by name.
    assert {reason: one["rows"] for reason, one in files["again.json"]["left_out"].items()} == {
        "malformed ticker": 1,
        "malformed: not an object": 1,
        "malformed status": 1,
    }
    assert files["market.json"]["left_out"] == {"listed already by another row": {"rows": 1, "first_row": None}}
    assert files["grids.json"]["left_out"] == {"malformed price_ranges": {"rows": 1, "first_row": None}}
    assert set(files["trades.json"]["left_out"]) == {"of a market that nothing describes"}
    assert files["odd_book.json"]["left_out"] == {"malformed book": {"rows": 1, "first_row": None}}
    assert files["series.json"]["used"] == 1
    assert unread["book.json"] == "a book of no market: `path` is missing"
    assert unread["status.json"].startswith("unknown kind: an answer with exchange_active")
    assert unread["picture.png"].startswith("unknown kind")
    assert "cut off" in unread["cut.json.gz"]
    assert unread["rows.csv"].startswith("not JSON")
    assert len(lines) == len(files) + len(unread)


def test_a_folder_without_recordings_is_no_tape(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnplayableError, match="no recordings of Kalshi"):
        KalshiSandbox(tape=tmp_path / "empty")
    with pytest.raises(UnplayableError, match="no folder"):
        KalshiSandbox(tape=tmp_path / "none")


def test_a_tape_keeps_its_pace(http, tmp_path):
    """Of two frames a minute apart the second waits for its time."""
    at = 1_781_159_489_000
    lines = [frame(at, "orderbook_snapshot", SNAPSHOT), frame(at + MINUTE, "orderbook_delta", DELTA, 2)]
    folder = put(tmp_path / "tape", market={"market": MARKET}, capture=lines)
    with KalshiSandbox(tape=folder, start_ms=START_MS, hold=True, speed=2) as exchange:
        exchange.call(lambda: exchange.source.advance(START_MS + MINUTE // 2 - 1))
        assert exchange.source.played == 1
        exchange.call(lambda: exchange.source.advance(START_MS + MINUTE // 2))
        assert exchange.source.played == 2
