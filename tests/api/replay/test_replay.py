"""Replays in the exchange's protocol and in ours, with third-party clients."""

from __future__ import annotations

import datetime as dt
import json
import time
from contextlib import contextmanager

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from api.replay import history
from orchestration.maintenance import packs
from tests.api.listening import Listener
from tests.api.replay.past import HASHES, MS, START, lived
from tests.factories import insert
from tests.patience import PATIENCE_S
from upstream.polymarket.market_channel.socket import parse


@pytest.fixture(scope="module")
def rain(server_conn):
    return lived(server_conn)


@pytest.fixture(params=["rows", pytest.param("packs", marks=pytest.mark.license("apache"))])
def stored(request, rain, server_conn):
    """The market, its book events as rows or packed."""
    if request.param == "packs":
        packs.bring_up_to_date(server_conn, dt.datetime.now(dt.UTC))
        assert server_conn.execute("select count(*) from book_packs").fetchone() == (2,)
    else:
        packs.restore_rows(server_conn, START - dt.timedelta(days=1), START + dt.timedelta(days=1))
    return rain


@pytest.fixture
def open_channel(server, server_key):
    @contextmanager
    def opened(since=-1000, until=130_000, speed=0, key=None):
        said = f"from={MS + since}&to={MS + until}&speed={speed}&api_key={key or server_key}"
        with connect(f"ws://127.0.0.1:{server.port}/replay/ws/market?{said}", compression=None) as socket:
            yield socket

    return opened


def subscribe(socket, *tokens, **more):
    socket.send(json.dumps({"type": "market", "assets_ids": list(tokens), **more}))


def until_the_end(socket):
    """Everything that comes, frame by frame, and how it ended."""
    frames = []
    try:
        while True:
            frames.append(json.loads(socket.recv(PATIENCE_S)))
    except ConnectionClosed as closed:
        return frames, (closed.rcvd.code, closed.rcvd.reason)


def test_the_market_channel_says_what_the_exchange_said(stored, open_channel):
    yes, no = stored["tokens"]
    with open_channel() as socket:
        subscribe(socket, yes, no)
        frames, end = until_the_end(socket)

    of = {"market": stored["market_id"]}
    entry = {"asset_id": yes, "best_ask": "0.42"}
    assert end == (1000, "the replay is over")
    assert frames[0] == []
    assert frames[1] == {
        **of,
        "asset_id": yes,
        "timestamp": str(MS),
        "hash": HASHES[0],
        "bids": [{"price": "0.39", "size": "1"}, {"price": "0.4", "size": "5"}],
        "asks": [{"price": "0.42", "size": "2"}],
        "min_order_size": "7",
        "tick_size": "0.01",
        "neg_risk": True,
        "event_type": "book",
    }
    assert frames[2] == {
        **of,
        "price_changes": [
            {**entry, "price": "0.41", "size": "3", "side": "BUY", "hash": HASHES[1], "best_bid": "0.41"}
        ],
        "timestamp": str(MS + 60_000),
        "event_type": "price_change",
    }
    books, changes = sorted(frames[3:5], key=lambda frame: frame["event_type"])
    assert (books["asset_id"], books["asks"]) == (no, [])
    assert changes["price_changes"] == [
        {**entry, "price": "0.41", "size": "0", "side": "BUY", "hash": HASHES[2], "best_bid": "0.4"},
        {**entry, "price": "0.43", "size": "9.5", "side": "SELL", "hash": HASHES[2], "best_bid": "0.4"},
    ]
    assert frames[5] == {
        **of,
        "asset_id": yes,
        "price": "0.42",
        "size": "1.5",
        "side": "BUY",
        "timestamp": str(MS + 90_000),
        "transaction_hash": "0x" + "ab" * 32,
        "fee_rate_bps": "0",
        "event_type": "last_trade_price",
    }
    assert frames[6] == {
        **of,
        "asset_id": yes,
        "old_tick_size": "0.01",
        "new_tick_size": "0.001",
        "timestamp": str(MS + 100_000),
        "event_type": "tick_size_change",
    }
    assert frames[7]["price_changes"][0]["best_ask"] == "0.415"
    assert len(frames) == 8


def test_whoever_begins_later_is_greeted_with_the_books_of_that_moment(stored, open_channel):
    yes, no = stored["tokens"]
    with open_channel(since=95_000) as socket:
        subscribe(socket, yes, no)
        (books, *rest), _ = until_the_end(socket)

    first, second = sorted(books, key=lambda each: each["asset_id"] != yes)
    assert (first["hash"], first["last_trade_price"], first["tick_size"]) == (HASHES[2], "0.42", "0.01")
    assert first["asks"] == [{"price": "0.43", "size": "9.5"}, {"price": "0.42", "size": "2"}]
    assert (second["asset_id"], second["bids"]) == (no, [{"price": "0.58", "size": "2"}])
    assert [each["event_type"] for each in rest] == ["tick_size_change", "price_change"]


def test_years_of_silence_are_passed_over(stored, open_channel):
    with open_channel(since=-150_000_000_000) as socket:
        subscribe(socket, *stored["tokens"])
        frames, end = until_the_end(socket)

    assert (len(frames), end[0]) == (8, 1000)


@pytest.mark.parametrize("most", [2, 3, 100])
def test_what_is_too_much_to_be_read_at_once_is_read_in_pieces(monkeypatch, stored, server_conn, most):
    for name, value in {"FEW_EVENTS": 1, "MANY_EVENTS": 1, "MAX_EVENTS": most, "MAX_PACKS": 1}.items():
        monkeypatch.setattr(history, name, value)
    reader = history.HistoryReader(lambda query, **asked: list(query(server_conn, **asked)))
    places = reader.places(stored["tokens"])
    at, found = START - dt.timedelta(seconds=1), []
    while at < (until := START + dt.timedelta(seconds=130)):
        page, at = reader.next(places, at, until)
        found += page

    assert [(each.us // 1000 - MS, type(each.what).__name__) for each in found] == [
        *((at, "BookEvent") for at in (0, 60_000, 61_000, 61_000, 61_000)),
        *((90_000, "TradeRecord"), (100_000, "TickChange"), (120_000, "BookEvent")),
    ]


def test_a_page_is_no_longer_than_may_be_read_at_once(monkeypatch, stored, server_conn):
    monkeypatch.setattr(history, "MAX_EVENTS", 4)
    monkeypatch.setattr(history, "FIRST_WINDOW", dt.timedelta(hours=1))
    reader = history.HistoryReader(lambda query, **asked: list(query(server_conn, **asked)))
    places = reader.places(stored["tokens"])

    page, upto = reader.next(places, START - dt.timedelta(seconds=1), START + dt.timedelta(seconds=130))

    assert len(page) < 4
    assert upto < START + dt.timedelta(seconds=61)


def test_our_own_listener_of_the_exchange_understands_all_of_it(stored, open_channel):
    with open_channel() as socket:
        subscribe(socket, *stored["tokens"], custom_feature_enabled=True)
        frames, _ = until_the_end(socket)

    kinds = [type(message).__name__ for frame in frames for message in parse(json.dumps(frame).encode())]
    assert "Refused" not in kinds
    assert kinds.count("BestBidAsk") == 5
    assert {"Book", "LevelChange", "LastTrade", "TickSize"} <= set(kinds)


def test_a_clock_runs_as_fast_as_wished_and_who_comes_meanwhile_begins_meanwhile(rain, open_channel):
    yes, no = rain["tokens"]
    began = time.monotonic()
    with open_channel(since=59_000, until=101_000, speed=20) as socket:
        subscribe(socket, yes)
        heard = [json.loads(socket.recv(PATIENCE_S)) for _ in range(3)]  # the book, and two changes
        socket.send(json.dumps({"operation": "subscribe", "assets_ids": [no]}))
        greeted = json.loads(socket.recv(PATIENCE_S))
        socket.send(json.dumps({"operation": "unsubscribe", "assets_ids": [yes]}))
        rest, end = until_the_end(socket)

    assert [each["timestamp"] for each in heard[1:]] == [str(MS + 60_000), str(MS + 61_000)]
    assert [each["asset_id"] for each in greeted] == [no]
    assert (rest, end[0]) == ([], 1000)
    assert 42 / 20 <= time.monotonic() - began < 42


def test_pings_are_answered_and_nonsense_is_told_so(rain, open_channel):
    with open_channel(speed=0.1) as socket:
        for said, answer in (("PING", "PONG"), ("nonsense", "INVALID OPERATION"), ("{}", "INVALID OPERATION")):
            socket.send(said)
            assert socket.recv(PATIENCE_S) == answer
        subscribe(socket, *rain["tokens"], "77", "no token")
        assert json.loads(socket.recv(PATIENCE_S)) == []
        socket.send("PING")
        assert socket.recv(PATIENCE_S) == "PONG"


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ("from=1&api_key=wrong", 403, "forbidden"),
        ("api_key={key}", 400, "missing_parameter"),
        ("from=noon&api_key={key}", 400, "invalid_parameter"),
        ("from=2000&to=1000&api_key={key}", 400, "invalid_parameter"),
        ("from=2000&speed=-1&api_key={key}", 400, "invalid_parameter"),
        ("from=99999999999999&api_key={key}", 400, "invalid_parameter"),
    ],
)
def test_what_cannot_be_replayed_is_refused_before_the_upgrade(server, server_key, asked, status, code):
    url = f"ws://127.0.0.1:{server.port}/replay/ws/market?{asked.format(key=server_key)}"

    with pytest.raises(InvalidStatus) as refusal, connect(url):
        pass

    assert (refusal.value.response.status_code, json.loads(refusal.value.response.body)["code"]) == (status, code)


# --- In the stream's protocol


@contextmanager
def replaying(server, key, since=-1000, until=130_000, speed=0):
    url = server.stream(key, replay_from=MS + since, replay_to=MS + until, speed=speed)
    with connect(url, compression=None) as socket:
        yield Listener(socket)


def test_the_stream_tells_of_the_past_in_its_own_words(server, server_key, stored):
    with replaying(server, server_key) as client:
        client.say("subscribe", markets=["rain"])
        assert client.next()["markets"] == [stored["market_id"]]
        said, completed = client.until("replay_completed")
        with pytest.raises(ConnectionClosed) as closed:
            client.next()

    assert client.hello["replay"] == {"from": MS - 1000, "to": MS + 130_000, "speed": 0}
    assert [message["seq"] for message in said] == list(range(1, len(said) + 1))
    yes = [message for message in said if message["data"]["outcome"] == 0]
    assert [(message["type"], message["ts"] - MS) for message in yes] == [
        *(("orderbook", 0), ("price", 0)),
        *(("orderbook", 60_000), ("price", 60_000)),
        *(("orderbook", 61_000), ("price", 61_000)),
        *(("trade", 90_000), ("price", 90_000)),
        *(("orderbook", 120_000), ("price", 120_000)),
    ]
    books = [message["data"] for message in yes if message["type"] == "orderbook"]
    assert [book["kind"] for book in books] == ["snapshot", "delta", "delta", "delta"]
    assert (books[2]["bids"], books[2]["asks"]) == ([{"price": 0.41, "size": 0.0}], [{"price": 0.43, "size": 9.5}])
    assert (books[3]["best_ask"], books[3]["tick_size"], books[3]["hash"]) == (0.415, 0.001, HASHES[4])
    traded = yes[6]["data"]
    assert (traded["price"], traded["size"], traded["side"], traded["value_usd"]) == (0.42, 1.5, "BUY", 0.63)
    assert yes[7]["data"]["last"] == 0.42
    assert completed == {"type": "replay_completed", "seq": len(said), "complete": True, "gaps": []}
    assert closed.value.rcvd.code == 1000


def test_a_replay_that_broke_off_goes_on_after_what_was_heard(server, server_key, rain):
    with replaying(server, server_key) as client:
        client.say("subscribe", markets=["rain"], types=["trade", "orderbook"], resume_from=3)
        said, _ = client.until("replay_completed")

    assert [message["seq"] for message in said[1:]] == [4, 5, 6]


def test_a_stretch_with_a_gap_is_not_complete(server, server_key, server_conn, rain):
    span = {"from_ts": START, "to_ts": START + dt.timedelta(seconds=3)}
    insert(server_conn, "coverage_gaps", {"kind": "books", "market_key": rain["market_key"], "cause": "silent", **span})
    with replaying(server, server_key) as client:
        client.say("subscribe", markets=[rain["market_id"]], types=["trade"])
        _, completed = client.until("replay_completed")
    server_conn.execute("delete from coverage_gaps")

    assert completed["complete"] is False
    assert completed["gaps"] == [{"from_ts": MS, "to_ts": MS + 3000, "cause": "silent"}]


def test_a_market_is_given_up_under_any_of_its_names(server, server_key, server_conn, rain):
    server_conn.execute("update markets set gamma_id = '517' where market_key = %s", [rain["market_key"]])
    with replaying(server, server_key, speed=0.1) as client:
        for name in ("rain", "517", rain["market_id"].upper().replace("0X", "0x")):
            client.say("subscribe", markets=[name])
            assert client.until("subscribed")[1]["markets"] == [rain["market_id"]]
            client.say("unsubscribe", markets=[name])
            assert client.until("subscribed")[1]["markets"] == []


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"action": "subscribe"}, "invalid_parameter"),
        ({"action": "subscribe", "markets": ["unheard-of"]}, "not_found"),
        ({"action": "subscribe", "markets": ["a\0b"]}, "not_found"),
        ({"action": "unsubscribe", "markets": ["unheard-of"]}, "not_found"),
        ({"action": "subscribe", "markets": ["rain"], "types": ["signal"]}, "invalid_parameter"),
        ({"action": "subscribe_wallet", "wallets": ["0x" + "1" * 40]}, "invalid_parameter"),
        ({"action": "dance"}, "invalid_parameter"),
        ("nonsense", "invalid_body"),
    ],
)
def test_what_cannot_be_done_is_told_and_the_replay_stays(server, server_key, rain, said, code):
    with replaying(server, server_key) as client:
        client.socket.send(said if isinstance(said, str) else json.dumps(said))
        assert client.until("error")[1]["code"] == code
        client.say("ping")
        assert client.next()["type"] == "pong"


def test_an_end_goes_with_a_beginning(server, server_key):
    with pytest.raises(InvalidStatus) as refusal, connect(server.stream(server_key, replay_to=MS)):
        pass

    assert refusal.value.response.status_code == 400
