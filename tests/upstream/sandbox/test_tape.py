"""A tape plays all that was recorded, in its formats, shifted in time only."""

import gzip
import json
from collections import Counter, defaultdict

import httpx
import pandas as pd
import pytest

from tests.upstream.sandbox.conftest import follow, open_tokens, token_ids, walk
from upstream.sandbox.server import Sandbox
from upstream.sandbox.tape.folder import UnplayableError
from upstream.sandbox.tape.recording import BookSeen, LevelsChanged, Printed
from upstream.sandbox.tape.tape import Tape, lines, read_tape

START_MS = 1_795_000_000_000
CAPTURES = [
    "ws_market/20250619_mlb-pit-det-2025-06-19_polymarket-market-events.csv.gz",  # sides are bid and ask
    "ws_market/20250701_mlb-cin-bos-2025-07-01_polymarket-market-events.csv.gz",  # other columns, a malformed line
]


@pytest.fixture(scope="module")
def tape(recorded) -> Tape:
    return read_tape(recorded)


def rebuilt(path) -> list[dict]:
    """Return the messages of a capture, by pandas: consecutive rows with the same key are one."""
    rows = pd.read_csv(path, dtype=str, on_bad_lines="skip")
    key = rows[["asset_id", "hash", "timestamp", "event_type"]]
    number = (key != key.shift()).any(axis=1).cumsum()
    messages: dict[int, dict] = {}
    for at, row in zip(number, rows.to_dict("records"), strict=True):
        message = messages.setdefault(
            at,
            {
                "kind": row["event_type"],
                "asset_id": row["asset_id"],
                "hash": row["hash"],
                "at_ms": int(row["timestamp"]),
                "levels": [],
            },
        )
        message["levels"].append(
            (row["side"] in ("bid", "BUY"), round(float(row["price"]) * 1e6), round(float(row["size"]) * 1e6))
        )
    return list(messages.values())


def wire_levels(message: dict) -> list[tuple[bool, int, int]]:
    """Return the levels of a message: bid or ask, price, size."""

    def level(entry: dict, bought: bool) -> tuple[bool, int, int]:
        return bought, round(float(entry["price"]) * 1e6), round(float(entry["size"]) * 1e6)

    if message["event_type"] == "book":
        return [level(entry, True) for entry in message["bids"]] + [level(entry, False) for entry in message["asks"]]
    return [level(entry, entry["side"] == "BUY") for entry in message["changes"]]


@pytest.mark.parametrize("name", CAPTURES)
def test_messages_are_what_pandas_makes_of_the_rows(tape, recorded, name):
    expected = rebuilt(recorded / name)
    start = min(message["at_ms"] for message in expected)
    recording = next(recording for recording in tape.recordings if recording.name == name)
    place = [one.name for one in tape.recordings].index(name)
    timeline = tape.timelines(START_MS, 1.0)[place]

    played = [tape_event.message("0x0", timeline(tape_event.at_ms)) for tape_event in recording.tape_events]

    assert len(played) == len(expected)
    offsets = {
        int(message["timestamp"]) - (other["at_ms"] - start) for message, other in zip(played, expected, strict=True)
    }
    assert offsets == {timeline(start)}, "time was not just moved"
    for message, other in zip(played, expected, strict=True):
        assert (message["event_type"], message["asset_id"], message["hash"]) == (
            other["kind"],
            other["asset_id"],
            other["hash"],
        )
        assert sorted(wire_levels(message)) == sorted(other["levels"])


def test_malformed_lines_are_counted(tape):
    told = {one["file"]: one for one in tape.account()["files"]}

    assert told[CAPTURES[1]]["left_out"] == {
        "malformed: 11 cells instead of 10": {"rows": 1, "first_row": 14960},
    }
    assert told[CAPTURES[1]]["used"] == told[CAPTURES[1]]["rows"] - 1


def test_all_captures_and_more_than_a_thousand_real_markets_are_on_the_tape(tape):
    summary = tape.summary()

    assert summary["socket_captures"] == 21
    assert summary["markets_described_by_gamma"] >= 1000
    assert len({listing.gamma.get("conditionId") for listing in tape.listings}) == len(tape.listings)
    assert len({str(listing.gamma["id"]) for listing in tape.listings}) == len(tape.listings)


def test_every_happening_finds_an_open_market_and_no_token_has_two(tape):
    of_token = Counter(token for listing in tape.listings for token in token_ids(listing.gamma))
    playing = {token for recording in tape.recordings for token in recording.tokens()}
    closed = {token for listing in tape.listings if listing.gamma["closed"] for token in token_ids(listing.gamma)}

    assert set(of_token.values()) == {1}
    assert playing <= of_token.keys()
    assert not playing & closed


def test_pages_served_twice_count_once(tape, recorded):
    name = "trades/data_api_trades_nobel_2025-10.csv.gz"
    rows = pd.read_csv(recorded / name, dtype=str)
    recording = next(recording for recording in tape.recordings if recording.name == name)

    assert len(rows) == 5000
    assert len(recording.tape_events) == len(rows.drop_duplicates()) == 1500
    assert len({one.tx for one in recording.tape_events}) == rows["transactionHash"].nunique()


def test_no_trade_is_on_the_tape_twice(tape):
    keys = [
        (one.tx, one.token, one.side, one.price, one.size)
        for recording in tape.recordings
        for one in recording.tape_events
        if isinstance(one, Printed)
    ]

    assert len(keys) == len(set(keys)) > 7000


def test_each_recording_starts_with_the_tape_and_keeps_its_pace(tape):
    for speed in (1.0, 20.0):
        firsts, lasts = {}, {}
        for played in tape.play(START_MS, speed):
            name = played.recording.group or played.recording.name
            firsts.setdefault(name, played.due_ms)
            lasts[name] = played.due_ms
        spans = defaultdict(list)
        for recording in tape.recordings:
            spans[recording.group or recording.name] += [recording.first_ms, recording.last_ms]

        assert all(0 <= first - START_MS < 2_000 for first in firsts.values())
        for name, moments in spans.items():
            assert lasts[name] - firsts[name] == pytest.approx((max(moments) - min(moments)) / speed, abs=2)


def test_as_fast_as_possible_ends_now_and_keeps_the_pace_of_the_past(tape):
    times = defaultdict(list)
    for played in tape.play(START_MS, 0):
        times[played.recording.group or played.recording.name].append(played.ts_ms)

    assert all(max(moments) == START_MS for moments in times.values())


def test_what_is_due_comes_in_order(tape):
    due = [played.due_ms for played in tape.play(START_MS, 50)]

    assert due == sorted(due)
    assert len(due) == sum(len(recording.tape_events) for recording in tape.recordings)


def test_made_objects_say_what_they_are_made_from(tape):
    for listing in tape.listings:
        if "sandboxMadeFrom" in listing.gamma:
            assert listing.gamma["description"].startswith("Made from a recording (")
            assert isinstance(listing.gamma["sandboxAssigned"], list)


def test_a_whole_small_tape_is_heard_as_it_is_read(small_tape):
    """Over real sockets: every message and trade of the tape, in its order, and the last books."""
    with (
        httpx.Client(trust_env=False) as http,
        Sandbox(tape=small_tape, speed=0, hold=True, start_ms=START_MS) as exchange,
    ):
        tokens = open_tokens(http, exchange)

        async def talk(follower):
            await follower.say(type="market", assets_ids=tokens)
            await follower.listen(lambda: bool(follower.books))
            exchange.call(exchange.play)
            await follower.listen(lambda: exchange.source.ended)
            await follower.settle(exchange)

        heard = follow(exchange, talk)
        status = http.get(f"{exchange.url}/sandbox/status").json()
        trades = walk_trades(http, exchange)
        markets = walk(http, exchange)
        books = {token: http.get(f"{exchange.clob_url}/book", params={"token_id": token}) for token in tokens}

    tape = read_tape(small_tape)
    assert heard.messages == list(lines(tape, START_MS, 0, "messages"))
    expected = sorted(
        (line["tx"], line["token"], line["side"], float(line["price"]), float(line["size"]))
        for line in lines(tape, START_MS, 0, "trades")
    )
    assert sorted(trades) == expected
    assert (status["source"], status["ended"], status["played"]["share"]) == ("tape", True, 1.0)
    volumes = Counter()
    for line in lines(tape, START_MS, 0, "trades"):
        volumes[line["condition_id"]] += round(float(line["price"]) * float(line["size"]), 6)
    open_markets = [market for market in markets if not market["closed"] and market["conditionId"] in volumes]
    assert open_markets
    assert all(
        market["volumeNum"] == pytest.approx(volumes[market["conditionId"]], abs=1e-3) for market in open_markets
    )
    rebuilt_books = last_books(heard.messages)
    assert len(rebuilt_books) == 6
    for token, levels in rebuilt_books.items():
        book = books[token].json()
        assert {(True, *pair(entry)) for entry in book["bids"]} | {
            (False, *pair(entry)) for entry in book["asks"]
        } == levels


def walk_trades(http, exchange) -> list[tuple]:
    found: list[tuple] = []
    cursor: dict[str, str] = {}
    while True:
        page = http.get(f"{exchange.data_api_url}/v2/trades", params={"limit": 1000, **cursor}).json()
        found += [
            tuple(row[name] for name in ("transaction_hash", "token_id", "side", "price", "size"))
            for row in page["data"]
        ]
        if not page["pagination"]["has_more"]:
            return found
        cursor = {"cursor": page["pagination"]["next_cursor"]}


def pair(entry: dict) -> tuple[int, int]:
    return round(float(entry["price"]) * 1e6), round(float(entry["size"]) * 1e6)


def last_books(messages: list[dict]) -> dict[str, set[tuple[bool, int, int]]]:
    books: dict[str, dict[tuple[bool, int], int]] = defaultdict(dict)
    for message in messages:
        if message["event_type"] == "last_trade_price":
            continue
        book = books[message["asset_id"]]
        if message["event_type"] == "book":
            book.clear()
        for bought, price, size in wire_levels(message):
            if size:
                book[bought, price] = size
            else:
                book.pop((bought, price), None)
    return {token: {(*place, size) for place, size in book.items()} for token, book in books.items()}


def test_a_resolved_market_pays_as_it_did(small_tape):
    with gzip.open(small_tape / "trades/btc5m_1779805500_trades_ticks.json.gz") as file:
        whole = json.load(file)
    with httpx.Client(trust_env=False) as http, Sandbox(tape=small_tape, speed=0) as exchange:
        while not http.get(f"{exchange.url}/sandbox/status").json()["ended"]:
            pass
        market = walk(http, exchange, condition_ids=whole["cid"])[0]

    assert market["closed"] is True
    assert json.loads(market["outcomePrices"]) == (["1", "0"] if whole["up_won"] else ["0", "1"])
    assert json.loads(market["clobTokenIds"]) == [whole["up_token"], whole["down_token"]]


def test_gamma_objects_are_served_as_recorded(small_tape):
    with gzip.open(small_tape / "gamma/markets_20_2024-07.json.gz") as file:
        real = {market["id"]: market for market in json.load(file)}
    with httpx.Client(trust_env=False) as http, Sandbox(tape=small_tape, hold=True) as exchange:
        served = {market["id"]: market for market in walk(http, exchange)}

    assert {market_id: served[market_id] for market_id in real} == real


def test_shapes_are_those_of_their_time(tape):
    conditions = tape.conditions()
    kinds = Counter()
    for recording in tape.recordings:
        for tape_event in recording.tape_events[:200]:
            if isinstance(tape_event, LevelsChanged):
                message = tape_event.message(conditions[tape_event.token][0], START_MS)
                assert message.keys() == {"event_type", "asset_id", "market", "timestamp", "hash", "changes"}
            elif isinstance(tape_event, BookSeen) and recording.kind == "socket":
                message = tape_event.message(conditions[tape_event.token][0], START_MS)
                assert message.keys() == {"event_type", "asset_id", "market", "timestamp", "hash", "bids", "asks"}
            else:
                continue
            kinds[message["event_type"]] += 1
            assert message["market"].startswith("0x")
            assert len(message["market"]) == 66

    assert kinds["price_change"] > 1000
    assert kinds["book"] > 100


def test_a_folder_without_recordings_is_an_error(tmp_path):
    with pytest.raises(UnplayableError, match="no recordings in"):
        read_tape(tmp_path)
    with pytest.raises(UnplayableError, match="no folder of recordings"):
        read_tape(tmp_path / "nowhere")
