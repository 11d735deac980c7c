import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestration.ingest.storage.rows import Refusal, WriteBatch
from orchestration.ingest.storage.writer import Writer
from sql import database
from tests import stream_rows
from tests.orchestration.ingest.builders import NOW, book, change, make_normalizer, token, trade, trades

YES, NO = token(7, 0), token(7, 1)
BIDS, ASKS = [(400_000, 5_000_000), (390_000, 1_000_000)], [(420_000, 2_000_000)]


@pytest.fixture
def writer(database_url, conn):  # a writer commits: its temporary tables are emptied by that
    return Writer(conn)


def normalized(*frames):
    made = make_normalizer(YES, NO)
    for frame in frames:
        made.apply(frame)
    return made


def books(made):
    return [state.live_book() for state in made.states.values() if state.book.state == "verified"]


def published(conn, type_=None):
    rows = stream_rows.rows(conn, known=[token(key, outcome) for key in range(1, 50) for outcome in (0, 1)])
    for row in rows:
        message = json.loads(row.message)
        assert (message["seq"], message["type"], message["market_id"]) == (row.seq, row.type, row.market_id)
    return [json.loads(row.message) for row in rows if type_ in (None, row.type)]


def counts(conn):
    tables = ("trades", "book_events", "quotes")
    found = {table: conn.execute(f"select count(*) from {table}").fetchone()[0] for table in tables}
    return {**found, "stream_events": len(published(conn))}


def test_every_row_arrives_as_it_was_sent(writer, conn):
    made = normalized(
        [book(YES, BIDS, ASKS, NOW, "ab" * 20)],
        [change(YES, 1, 410_000, 3_000_000, 410_000, 420_000, NOW + 1, "cd" * 20)],
        [trade(YES, 410_000, 2_500_000, NOW + 2, -1, "0x" + "ef" * 32)],
    )
    writer.write(made.cut_batch(), books(made))

    assert conn.execute(
        "select as_ms(ts), market_key, outcome, side, price, size, value_usd, encode(tx_hash, 'hex') from trades"
    ).fetchall() == [(NOW + 2, 7, 0, -1, 410_000, 2_500_000, 1_025_000, "ef" * 32)]
    assert conn.execute(
        "select as_ms(ts), side, price, size, bid_prices, bid_sizes, ask_prices, ask_sizes, encode(hash, 'hex')"
        " from book_events order by seq"
    ).fetchall() == [
        (NOW, None, None, None, [400_000, 390_000], [5_000_000, 1_000_000], [420_000], [2_000_000], "ab" * 20),
        (NOW + 1, 1, 410_000, 3_000_000, None, None, None, None, "cd" * 20),
    ]
    assert conn.execute("select as_ms(ts), bid, ask, mid, bid_size, ask_size from quotes order by ts").fetchall() == [
        (NOW, 400_000, 420_000, 410_000, 5_000_000, 2_000_000),
        (NOW + 1, 410_000, 420_000, 415_000, 3_000_000, 2_000_000),
    ]
    assert conn.execute(
        "select bid, ask, mid, bid_size, ask_size, last, as_ms(last_ts), as_ms(ts) from live_prices"
    ).fetchall() == [(410_000, 420_000, 415_000, 3_000_000, 2_000_000, 410_000, NOW + 2, NOW + 2)]
    assert conn.execute(
        "select bid_prices, bid_sizes, ask_prices, ask_sizes, tick_size, encode(hash, 'hex'), as_ms(ts), verified"
        " from live_books"
    ).fetchall() == [
        (
            [410_000, 400_000, 390_000],
            [3_000_000, 5_000_000, 1_000_000],
            [420_000],
            [2_000_000],
            10_000,
            "cd" * 20,
            NOW + 1,
            True,
        )
    ]


def test_an_empty_book_is_a_book(writer, conn):
    made = normalized([book(YES, [], [])])
    writer.write(made.cut_batch(), books(made))

    assert conn.execute("select bid_prices, ask_sizes, verified from live_books").fetchall() == [([], [], True)]
    assert conn.execute("select bid_prices, ask_sizes from book_events").fetchall() == [([], [])]


@pytest.mark.parametrize("replay", [False, True])
def test_writing_twice_is_writing_once(writer, conn, replay):
    made = normalized(
        [book(YES, BIDS, ASKS)],
        [change(YES, 1, 410_000, 3_000_000, ts_ms=NOW + 1)],
        [trade(YES, ts_ms=NOW + 2), trade(NO, ts_ms=NOW + 2)],
    )
    batch = made.cut_batch()

    first = writer.write(batch)
    before = counts(conn)
    again = writer.write(batch, replay=replay)

    assert (first.trades, first.events, first.quotes) == (2, 2, 2)
    assert (again.trades, again.events, again.quotes, again.published) == (0, 0, 0, 0)
    assert again.repeats == 3
    assert again.instants_ms == []
    assert counts(conn) == before


def test_of_a_batch_that_is_partly_stored_only_the_rest_is_written_and_published(writer, conn):
    rows = trades(10, YES)
    writer.write(WriteBatch(trades=rows[:4]))

    written = writer.write(WriteBatch(trades=[*rows, rows[9]]))

    assert written.trades == 6
    assert [each["data"]["id"] for each in published(conn, "trade")] == [str(row.trade_id) for row in rows]


def test_two_writers_at_once_write_each_row_once_and_publish_it_once(database_url, conn):
    rows = trades(3_000, YES, NO, token(8, 0))
    parts = [WriteBatch(trades=rows[start : start + 100]) for start in range(0, 3_000, 100)]

    def write(order):
        with database.connect(database_url, autocommit=True) as own:
            one = Writer(own)
            return sum(one.write(part, replay=True).trades for part in parts[::order])

    with ThreadPoolExecutor() as pool:
        written = list(pool.map(write, (1, 1)))

    assert sum(written) == 3_000
    assert counts(conn)["trades"] == 3_000
    assert sorted(int(each["data"]["id"]) for each in published(conn)) == sorted(row.trade_id for row in rows)


def test_the_streams_numbers_have_no_gaps_with_eight_writers_of_whom_some_fail(database_url, conn):
    def write(nth):
        with database.connect(database_url, autocommit=True) as own:
            writer = Writer(own)
            for turn in range(12):
                batch = WriteBatch(trades=trades(5, token(nth, 0), ts_ms=NOW + turn * 10))
                with own.transaction(force_rollback=turn % 3 == 2):
                    writer.write(batch)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(1, 9)))

    messages = published(conn)
    assert [each["seq"] for each in messages] == list(range(1, 8 * 8 * 5 + 1))
    assert len({each["data"]["id"] for each in messages}) == counts(conn)["trades"] == 320


def test_trades_and_prices_are_published_as_the_api_shows_them(writer, conn):
    made = normalized([book(YES, BIDS, ASKS)], [trade(YES, 410_000, 2_500_000, NOW + 2, -1, "0x" + "ef" * 32)])
    writer.write(made.cut_batch())

    (of_trade,) = published(conn, "trade")
    assert of_trade["ts"] == NOW + 2
    assert of_trade["data"] == {
        "id": of_trade["data"]["id"],
        "market_id": YES.market_id,
        "token_id": YES.token_id,
        "outcome": 0,
        "price": 0.41,
        "size": 2.5,
        "value_usd": 1.025,
        "side": "SELL",
        "tx_hash": "0x" + "ef" * 32,
        "ts": NOW + 2,
    }
    (of_price,) = published(conn, "price")
    del of_price["data"]["age_ms"]
    assert of_price["data"] == {
        "market_id": YES.market_id,
        "outcome": 0,
        "token_id": YES.token_id,
        "mid": 0.41,
        "bid": 0.4,
        "ask": 0.42,
        "spread": 0.02,
        "bid_size": 5.0,
        "ask_size": 2.0,
        "last": 0.41,
        "last_ts": NOW + 2,
        "volume_24h_usd": None,
        "ts": NOW + 2,
    }


def test_a_book_is_published_whole_first_and_by_its_changes_after(writer, conn):
    made = normalized([book(YES, BIDS, ASKS)])
    writer.write(made.cut_batch(), books(made))
    made.states[YES.token_id].needs_snapshot = False
    made.apply([change(YES, 1, 400_000, 1_000_000, ts_ms=NOW + 1)])
    made.apply([change(YES, 1, 400_000, 2_000_000, ts_ms=NOW + 2), change(YES, -1, 420_000, 0, ts_ms=NOW + 2)])
    writer.write(made.cut_batch(), books(made))

    whole, delta = (each["data"] for each in published(conn, "orderbook"))
    assert (whole["kind"], delta["kind"]) == ("snapshot", "delta")
    assert whole["bids"] == [{"price": 0.4, "size": 5.0}, {"price": 0.39, "size": 1.0}]
    assert (whole["depth_usd"], whole["tick_size"]) == (3.23, 0.01)
    assert (delta["bids"], delta["asks"]) == ([{"price": 0.4, "size": 2.0}], [{"price": 0.42, "size": 0.0}])
    assert (delta["best_bid"], delta["best_ask"], delta["mid"], delta["spread"]) == (0.4, None, None, None)
    assert int(delta["seq"]) > int(whole["seq"])


@pytest.mark.parametrize("batches", [1, 2])
def test_a_subscriber_ends_with_the_books_own_total_when_a_replay_adds_an_older_change(writer, conn, batches):
    made = normalized([book(YES, BIDS, ASKS)])
    writer.write(made.cut_batch(), books(made))
    made.states[YES.token_id].needs_snapshot = False
    older, newer = (change(YES, 1, 390_000, size, ts_ms=NOW + at) for at, size in ((1, 5), (2, 20)))
    leader = normalized([book(YES, BIDS, ASKS)], [newer])
    writer.write(leader.cut_batch())  # the replaced leader did not receive the older one

    standby_batches = []
    for message in (older, newer):
        made.apply([message])
        if batches == 2 or message is newer:
            standby_batches.append(made.cut_batch())
    for batch in standby_batches:
        writer.write(batch, replay=True)
    writer.write(WriteBatch())

    assert counts(conn)["book_events"] == 3
    levels = [
        level for each in published(conn, "orderbook") for level in each["data"]["bids"] if level["price"] == 0.39
    ]
    assert levels[-1]["size"] == 20 / 1_000_000


def test_an_unverified_book_is_published_whole_when_it_is_verified_again(writer, conn):
    made = normalized([book(YES, BIDS, ASKS)])
    writer.write(made.cut_batch(), books(made))
    made.states[YES.token_id].needs_snapshot = False
    writer.write(WriteBatch(), unverified=[YES])
    assert conn.execute("select verified from live_books").fetchall() == [(False,)]

    made.apply([change(YES, 1, 400_000, 1_000_000, ts_ms=NOW + 1)])
    writer.write(made.cut_batch(), books(made))

    assert conn.execute("select verified from live_books").fetchall() == [(True,)]
    assert [each["data"]["kind"] for each in published(conn, "orderbook")] == ["snapshot", "snapshot"]


def test_live_state_is_not_set_back_by_older_data(writer, conn):
    older, newer = normalized([book(YES, BIDS, ASKS)]), normalized([book(YES, [(430_000, 1)], [], NOW + 9)])
    writer.write(newer.cut_batch(), books(newer))
    writer.write(older.cut_batch(), books(older))

    assert conn.execute("select bid_prices from live_books").fetchall() == [([430_000],)]
    assert conn.execute("select bid from live_prices").fetchall() == [(430_000,)]


def test_the_last_trade_stays_while_no_newer_one_is_known(writer, conn):
    known, fresh = normalized([trade(YES, 410_000, ts_ms=NOW)]), normalized([book(YES, BIDS, ASKS, NOW + 5)])
    writer.write(known.cut_batch())
    writer.write(fresh.cut_batch())

    assert conn.execute("select last, as_ms(last_ts), bid from live_prices").fetchall() == [(410_000, NOW, 400_000)]


def test_a_fill_adds_what_was_missed_and_touches_no_live_state(writer, conn):
    live = normalized([book(YES, BIDS, ASKS, NOW + 50)], [trade(YES, 410_000, ts_ms=NOW + 60)])
    writer.write(live.cut_batch(), books(live))
    missed = normalized([book(YES, [(390_000, 1)], ASKS, NOW + 10)], [trade(YES, 400_000, ts_ms=NOW + 20)])

    written = writer.write(missed.cut_batch(), fill=True)

    assert (written.trades, written.events, written.published, written.instants_ms) == (1, 1, 1, [])
    assert conn.execute("select last, bid from live_prices").fetchall() == [(410_000, 400_000)]
    assert [each["data"]["price"] for each in published(conn, "trade")] == [0.41, 0.4]


def test_a_fill_knows_trades_that_another_source_gave_another_instant(writer, conn):
    with_hash = trade(YES, 410_000, ts_ms=NOW + 345, tx_hash="0x" + "12" * 32)
    without = trade(YES, 430_000, ts_ms=NOW + 1_777)
    writer.write(normalized([with_hash, without]).cut_batch())
    listed = [
        trade(YES, 410_000, ts_ms=NOW, tx_hash="0x" + "12" * 32),
        trade(YES, 430_000, ts_ms=NOW + 3_000, tx_hash="0x" + "34" * 32),
        trade(YES, 420_000, ts_ms=NOW, tx_hash="0x" + "56" * 32),
    ]

    assert writer.write(normalized(listed).cut_batch(), fill=True).trades == 1
    assert conn.execute("select price from trades order by price").fetchall() == [(410_000,), (420_000,), (430_000,)]


def test_a_replay_knows_trades_of_a_gap_that_was_filled_from_another_source(writer, conn):
    listed = trade(YES, 410_000, ts_ms=NOW, tx_hash="0x" + "12" * 32)
    writer.write(normalized([listed]).cut_batch(), fill=True)
    received = [
        trade(YES, 410_000, ts_ms=NOW + 345, tx_hash="0x" + "12" * 32),
        trade(YES, 420_000, ts_ms=NOW + 345, tx_hash="0x" + "34" * 32),
    ]

    assert writer.write(normalized(received).cut_batch(), replay=True).trades == 1
    assert conn.execute("select price, as_ms(ts) from trades order by price").fetchall() == [
        (410_000, NOW),
        (420_000, NOW + 345),
    ]


def test_what_was_refused_is_kept_with_its_payload(writer, conn):
    writer.write(WriteBatch(refusals=[Refusal("market_socket", "impossible price 0", '{"a": 1}')]))

    assert conn.execute("select source, reason, payload from quarantine").fetchall() == [
        ("market_socket", "impossible price 0", '{"a": 1}')
    ]


def test_the_lag_is_of_pushed_rows_that_were_really_inserted(writer):
    made = normalized(
        [book(YES, BIDS, ASKS, NOW - 86_400_000)], [trade(YES, ts_ms=NOW)], [change(NO, 1, 5, 5, ts_ms=NOW + 1)]
    )
    batch = made.cut_batch()

    assert sorted(writer.write(batch).instants_ms) == [NOW, NOW + 1]
    assert writer.write(batch).instants_ms == []


def test_candles_follow_what_is_written(writer, conn):
    writer.write(normalized([trade(YES, 410_000, ts_ms=NOW)], [trade(YES, 430_000, ts_ms=NOW + 1)]).cut_batch())

    assert conn.execute("select open, close, trades from candles_1m").fetchall() == [(410_000, 430_000, 2)]


def test_two_who_fill_at_once_do_not_give_one_trade_two_instants(database_url, conn):
    sources = [trade(YES, 410_000, ts_ms=NOW + ms, tx_hash="0x" + "12" * 32) for ms in (345, 0)]

    def fill(message):
        with database.connect(database_url, autocommit=True) as own:
            return Writer(own).write(normalized([message]).cut_batch(), fill=True).trades

    with ThreadPoolExecutor() as pool:
        assert sum(pool.map(fill, sources)) == 1
