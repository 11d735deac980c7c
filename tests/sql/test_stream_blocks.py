"""Blocks of stream messages: what is read is what was written, to the byte, and what cannot be read is named."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from orchestration import stream
from orchestration.ingest.storage import messages
from orchestration.ingest.storage.rows import Change, LiveBook, LivePrice, Token, TradeRow
from sql import stream_blocks, stream_reader
from sql.queries import stream as queries
from sql.stream_blocks import MAX_BYTES, MAX_MESSAGES, BlockError, StreamMessage
from sql.stream_reader import StreamReader
from tests import stream_rows
from tests.factories import insert

NOW_MS = 1_790_000_000_000
WALLET = b"\x07" * 20
SIGNS = '~ ^ " \\ \x00 \x01 \n Ü 🌧 %b'  # of which some have a meaning to the code


def plain(count, size=0):
    return [stream.message("signal", NOW_MS, None, {"nth": nth, "padding": "x" * size}) for nth in range(count)]


def publish(conn, told):
    with conn.transaction():
        return stream.publish(conn, told, NOW_MS)


def numbers(page):
    return [event.seq for event in page.events]


def read(conn, after, upto, limit=10_000):
    return StreamReader().read(conn, after, upto, limit)


def test_every_type_of_message_is_served_as_it_always_was(conn, add_market):
    market = add_market("rain")
    market_id, key, (yes, no) = market["market_id"], market["market_key"], market["token_ids"]
    token, other = Token(yes, market_id, key, 0), Token(no, market_id, key, 1)
    level = {"price": 0.41, "size": 3.0}
    best = {"best_bid": 0.41, "best_ask": None, "mid": None, "spread": None, "depth_usd": 0.0, "tick_size": None}
    book = {"outcome": 1, "token_id": no}
    of_book = {"hash": None, "seq": "3", "ts": NOW_MS}
    records = [
        *(("market", {"question": SIGNS}), ("signal", {"type": "whale_alert", "detail": {"from": 0.4}})),
        *(("onchain_trade", {"revoked": False, "tx_hash": "0x12"}), ("wallet_activity", {"role": "maker"})),
    ]
    told = [
        messages.trade(TradeRow(token, NOW_MS, 9, 1, 1, 410_000, 3_000_000, 1_230_000, b"\xef" * 32)),
        messages.price(LivePrice(token, 410_000, None, None, None, None, None, NOW_MS, None), NOW_MS),
        *messages.deltas([Change(other, NOW_MS, 1, 3, 1, 410_000, 3_000_000, "", True, 410_000, None, 0, None)]),
        messages.snapshot(LiveBook(other, [410_000], [3_000_000], [], [], 0, None, "", 3, NOW_MS, NOW_MS, True, True)),
        *(stream.message(kind, NOW_MS, market_id, record) for kind, record in records[:3]),
        stream.message("wallet_activity", NOW_MS, None, records[3][1], WALLET),
    ]
    last = publish(conn, told)

    ids = {"market_id": market_id, "token_id": yes, "outcome": 0}
    trade = {"price": 0.41, "size": 3.0, "value_usd": 1.23, "side": "BUY", "tx_hash": "0x" + "ef" * 32, "ts": NOW_MS}
    bare = dict.fromkeys(["ask", "spread", "bid_size", "ask_size", "last", "last_ts", "volume_24h_usd"])
    price = {"market_id": market_id, "outcome": 0, "token_id": yes, "mid": None, "bid": 0.41, **bare, "ts": NOW_MS}
    sides = {"bids": [level], "asks": []}
    expected = [
        ("trade", market_id, {"id": "9", **ids, **trade}),
        ("price", market_id, {**price, "age_ms": 0}),
        *(
            ("orderbook", market_id, {"market_id": market_id, **book, "kind": kind, **sides, **best, **of_book})
            for kind in ("delta", "snapshot")
        ),
        *((kind, market_id, record) for kind, record in records[:3]),
        ("wallet_activity", None, records[3][1]),
    ]
    served = [
        json.dumps(
            {"type": kind, "seq": seq, "ts": NOW_MS, "market_id": market, "data": data},
            separators=(",", ":"),
            ensure_ascii=False,
        )
        for seq, (kind, market, data) in enumerate(expected, last - len(expected) + 1)
    ]
    rows = stream_rows.rows(conn)
    assert [row.message for row in rows] == served
    assert [(row.type, row.market_id) for row in rows] == [(kind, market) for kind, market, _ in expected]
    assert [row.wallet for row in rows] == [None] * 7 + [WALLET]
    assert {row.ts for row in rows} == {datetime.fromtimestamp(NOW_MS / 1000, UTC)}


def test_a_transaction_is_a_block_and_a_long_one_is_several_that_follow_each_other(conn):
    assert [publish(conn, plain(count)) for count in (1, 2 * MAX_MESSAGES + 1, MAX_MESSAGES)] == [1, 4_002, 6_002]

    spans = [(block.seq_from, block.seq_to) for block in stream_rows.stored(conn)]
    assert spans == [(1, 1), (2, 2_001), (2_002, 4_001), (4_002, 4_002), (4_003, 6_002)]
    rows = stream_rows.rows(conn)
    assert [row.seq for row in rows] == [json.loads(row.message)["seq"] for row in rows] == list(range(1, 6_003))
    assert [json.loads(row.message)["data"]["nth"] for row in rows[1:4_002]] == list(range(4_001))


def test_long_messages_make_short_blocks(conn):
    publish(conn, [*plain(1), *plain(5, MAX_BYTES // 3), *plain(1, 2 * MAX_BYTES), *plain(1)])

    assert [len(range(block.seq_from, block.seq_to + 1)) for block in stream_rows.stored(conn)] == [3, 2, 1, 1, 1]
    assert len(stream_rows.rows(conn)) == 8


@pytest.mark.parametrize(
    ("after", "upto", "limit", "expected"),
    [
        (0, 30, 100, range(1, 31)),
        (4, 6, 100, range(5, 7)),  # within a block
        (9, 11, 100, range(10, 12)),  # of two
        (10, 10, 100, ()),
        (12, 30, 1, range(13, 14)),
        (12, 30, 10, range(13, 23)),
    ],
)
def test_events_are_read_from_any_number_to_any_other(conn, after, upto, limit, expected):
    for _ in range(3):
        publish(conn, plain(10))

    page = read(conn, after, upto, limit)

    assert numbers(page) == list(expected)
    assert (page.reached, page.missing) == (max(expected, default=after), [])


def test_numbers_that_no_block_has_are_missing(conn):
    publish(conn, plain(30))
    stream_rows.remove(conn, [*range(1, 6), *range(11, 15)].__contains__)
    conn.execute("update stream_head set last_seq = 10000000000")  # as after a restore
    last = publish(conn, plain(1))

    assert read(conn, 0, 30).missing == [(1, 5), (11, 14)]
    assert numbers(read(conn, 0, 30)) == [*range(6, 11), *range(15, 31)]
    assert read(conn, 26, 35).missing == [(31, 35)]
    assert read(conn, 30, 10**10, 10) == ([], 10**10, [(31, 10**10)])
    assert read(conn, 30, last, 10) == ([], last - 1, [(31, last - 1)])
    assert numbers(read(conn, last - 1, last, 10)) == [last]
    assert read(conn, last, last + 100, 10) == ([], last + 100, [(last + 1, last + 100)])


def test_those_that_are_not_wanted_are_not_missing(conn):
    publish(conn, [*plain(3), stream.message("market", NOW_MS, None, {})])

    page = StreamReader().read(conn, 0, 4, 10, lambda seq, kind: seq % 2 == 0 or kind == "market")

    assert (numbers(page), page.missing) == ([2, 4], [])


def test_a_read_of_long_messages_ends_early_and_the_next_one_continues(conn, monkeypatch):
    for _ in range(5):
        publish(conn, plain(3, 1_000))
    stream_rows.remove(conn, (7).__eq__)
    stream_rows.spoil(conn, 10)
    monkeypatch.setattr(stream_reader, "MAX_PAGE_BYTES", 4_000, raising=False)

    pages = [read(conn, after, 15) for after in (0, 6, 14)]

    assert [(numbers(page), page.reached, page.missing) for page in pages] == [
        ([1, 2, 3, 4, 5, 6], 6, []),
        ([8, 9, 13, 14, 15], 15, [(7, 7), (10, 12)]),
        ([15], 15, []),
    ]


def test_messages_that_are_not_wanted_do_not_end_a_read(conn, monkeypatch):
    for _ in range(5):
        publish(conn, plain(3, 1_000))
    monkeypatch.setattr(stream_reader, "MAX_PAGE_BYTES", 4_000, raising=False)

    page = StreamReader().read(conn, 0, 15, 100, lambda seq, _: seq == 15)

    assert (numbers(page), page.reached) == ([15], 15)


DAMAGE = {
    "a byte": lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
    "the checksum": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "half": lambda data: data[: len(data) // 2],
    "all": lambda _: b"",
    "all but the version": lambda data: data[:1],
    "the version": lambda data: b"\x02" + data[1:],
    "something else": lambda data: data[:1] + stream_blocks.zstandard.compress(b"\x93\x01\x02\x03"),
    "fewer": lambda _: stream_blocks.pack(plain(9)),
    "an index": lambda data: data[:1] + stream_blocks.zstandard.compress(b"\x93\x90\x9a" + b"\x00" * 10 + b"\xc4\x00"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_block_is_named_and_the_others_are_read(conn, caplog, damage):
    for _ in range(3):
        publish(conn, plain(10))
    data = stream_rows.stored(conn)[1].data
    conn.execute("update stream_blocks set data = %s where seq_from = 11", [damage(data)])

    page = read(conn, 4, 25)

    assert (numbers(page), page.reached, page.missing) == ([*range(5, 11), *range(21, 26)], 25, [(11, 20)])
    assert "block 11 to 20 cannot be read" in caplog.text
    with pytest.raises(BlockError):
        stream_blocks.unpack(damage(data), 10)


def test_what_claims_to_be_endless_is_not_unpacked(monkeypatch):
    data = stream_blocks.pack(plain(10, 1_000))
    monkeypatch.setattr(stream_blocks, "MAX_UNPACKED_BYTES", 10_000)

    with pytest.raises(BlockError, match="bytes"):
        stream_blocks.unpack(data, 10)


def price_of(token):
    return messages.price(LivePrice(token, None, None, None, None, None, None, NOW_MS, None), NOW_MS)


def test_the_ids_of_an_outcome_are_looked_up_once(conn, add_market, monkeypatch):
    tokens = []
    for nth in range(6):
        market = add_market(f"market-{nth}")
        tokens.append(Token(market["token_ids"][0], market["market_id"], market["market_key"], 0))
    publish(conn, [price_of(token) for token in tokens])
    asked = []

    def run(conn, query, arguments):
        asked.append(arguments.get("market_keys"))
        return query(conn, **arguments)

    reader = StreamReader(run)
    monkeypatch.setattr(stream_reader, "MAX_OUTCOMES", 4)
    for after, upto in ((0, 3), (0, 3), (0, 6), (3, 6)):
        page = reader.read(conn, after, upto, 10)
        assert [json.loads(each.message)["data"]["token_id"] for each in page.events] == [
            token.token_id for token in tokens[after:upto]
        ]
    assert [keys for keys in asked if keys] == [sorted(token.market_key for token in tokens)]

    reader.forget()
    assert reader.read(conn, 0, 6, 10).missing == []
    assert len([keys for keys in asked if keys]) == 2


def test_ids_that_other_readers_drop_meanwhile_are_not_missing(conn, add_market, monkeypatch):
    told = StreamMessage("wallet_activity", NOW_MS, None, b'"data":{}}', WALLET)
    for nth in range(3):
        market = add_market(f"market-{nth}")
        token = Token(market["token_ids"][0], market["market_id"], market["market_key"], 0)
        publish(conn, [price_of(token), told] if nth == 0 else [price_of(token)])
    monkeypatch.setattr(stream_reader, "MAX_OUTCOMES", 0)

    def run(conn, query, arguments):
        if query is queries.watchers:
            reader.read(conn, 2, 3, 10)
            reader.read(conn, 3, 4, 10)
        return query(conn, **arguments)

    reader = StreamReader(run)
    page = reader.read(conn, 0, 2, 10)

    assert (numbers(page), page.missing) == ([1, 2], [])


def test_a_message_of_an_outcome_that_the_catalogue_lacks_is_missing(conn, caplog):
    publish(conn, [*plain(1), price_of(Token("1", "0x", 77, 0)), *plain(1)])

    page = read(conn, 0, 3)

    assert (numbers(page), page.missing) == ([1, 3], [(2, 2)])
    assert "the catalogue lacks outcomes of the stream" in caplog.text


def test_a_personal_event_names_those_who_watched_the_wallet_then(conn):
    account = insert(conn, "accounts", {"email": "watcher@example.com", "app_name": "tests"})["account_id"]
    then = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    other = b"\x08" * 20
    for wallet, since in ((WALLET, then - timedelta(hours=1)), (other, then + timedelta(hours=1))):
        insert(
            conn, "wallets_watched", {"account_id": account, "wallet": wallet, "blocks": "{[0,)}", "watched_at": since}
        )
    told = StreamMessage("wallet_activity", NOW_MS, None, b'"data":{}}', WALLET)
    publish(conn, [told, replace(told, wallet=other), *plain(1)])

    assert [(event.wallet, event.watchers) for event in read(conn, 0, 3).events] == [
        (WALLET, [account]),
        (other, None),
        (None, None),
    ]
