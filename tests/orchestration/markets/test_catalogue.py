"""The catalogue's store: real changes are written, published once, and never go backwards."""

import json
import threading
import time
from datetime import UTC, datetime

import pytest

from orchestration.markets.catalogue import StoreResult, store
from sql import database
from tests import stream_rows


def market(number=1, **columns):
    return {
        "market_id": f"0x{number:064x}",
        "gamma_id": str(number),
        "slug": f"market-{number}",
        "question": f"Will it be {number}?",
        "status": "ACTIVE",
        "outcomes": ["Yes", "No"],
        "token_ids": [f"{number}01", f"{number}02"],
        "outcome_prices": [400_000, 600_000],
        "volume_usd": 1_000_000,
        "tags": ["politics"],
        "raw": json.dumps({"id": str(number), "updatedAt": "2026-01-01T00:00:00Z"}),
        **columns,
    }


def one(conn, column, number=1):
    row = conn.execute(f"select {column} from markets where market_id = %s", [f"0x{number:064x}"]).fetchone()
    return row and row[0]


def told(conn):
    return [json.loads(row.message) for row in stream_rows.rows(conn)]


def test_new_markets_come_in_with_their_tokens(conn):
    stored = store(conn, [market(1), market(2)], cause="listed")

    assert stored == StoreResult(inserted=2, status_changes=2)
    tokens = "select token_id, outcome, market_id from tokens join markets using (market_key) order by token_id"
    assert conn.execute(tokens).fetchall() == [
        ("101", 0, f"0x{1:064x}"), ("102", 1, f"0x{1:064x}"), ("201", 0, f"0x{2:064x}"), ("202", 1, f"0x{2:064x}"),
    ]  # fmt: skip


def test_storing_the_same_again_touches_nothing(conn):
    store(conn, [market(1)], cause="listed")
    before = conn.execute("select xmin, updated_at from markets").fetchall()

    assert store(conn, [market(1)], cause="walk") == StoreResult()

    assert conn.execute("select xmin, updated_at from markets").fetchall() == before
    assert len(told(conn)) == 1


@pytest.mark.parametrize(
    "change",
    [{"volume_usd": 2_000_000}, {"slug": "another"}, {"tags": ["sports"]}, {"outcome_prices": [500_000, 500_000]}],
)
def test_a_changed_field_is_written_and_moves_the_time_of_change(conn, change):
    store(conn, [market(1)], cause="listed")
    conn.execute("update markets set updated_at = '2020-01-01'")

    assert store(conn, [market(1, **change)], cause="walk") == StoreResult(changed=1)

    ((name, value),) = change.items()
    assert one(conn, name) == value
    assert one(conn, "updated_at").year > 2020


def test_the_exchanges_object_is_rewritten_for_words_but_not_for_figures(conn):
    store(conn, [market(1)], cause="listed")

    store(conn, [market(1, volume_usd=5, raw='{"v": 2}')], cause="walk")
    kept = one(conn, "raw")
    store(conn, [market(1, question="Or rather this?", raw='{"v": 3}')], cause="walk")

    assert kept == {"id": "1", "updatedAt": "2026-01-01T00:00:00Z"}
    assert one(conn, "raw") == {"v": 3}


def test_what_is_unknown_leaves_what_is_stored(conn):
    store(conn, [market(1)], cause="listed")

    stored = store(conn, [{"market_id": f"0x{1:064x}", "tags": [], "slug": None}], cause="socket")

    assert stored == StoreResult()
    assert (one(conn, "slug"), one(conn, "tags")) == ("market-1", ["politics"])


def test_a_word_about_an_unknown_market_is_passed_over(conn):
    assert store(conn, [{"market_id": f"0x{9:064x}", "status": "RESOLVED"}], cause="socket") == StoreResult()

    assert one(conn, "status", 9) is None


def test_each_change_of_state_is_recorded_and_told(conn):
    store(conn, [market(1)], cause="listed")
    store(conn, [market(1, status="CLOSED", closed_at=datetime(2026, 2, 1, tzinfo=UTC))], cause="ended")
    store(conn, [market(1, status="RESOLVED", winning_outcome=1, outcome_prices=[0, 1_000_000])], cause="payout")

    changes = conn.execute(
        "select from_status, to_status, cause from market_status_changes order by change_id"
    ).fetchall()
    assert changes == [(None, "ACTIVE", "listed"), ("ACTIVE", "CLOSED", "ended"), ("CLOSED", "RESOLVED", "payout")]
    messages = told(conn)
    assert [message["seq"] for message in messages] == [1, 2, 3]
    assert {message["type"] for message in messages} == {"market"}
    assert messages[2]["market_id"] == f"0x{1:064x}"
    assert messages[1]["data"]["closed_at"] == int(datetime(2026, 2, 1, tzinfo=UTC).timestamp())
    assert messages[2]["data"] | {"ts": 0} == {
        **messages[2]["data"], "ts": 0, "from_status": "CLOSED", "to_status": "RESOLVED", "cause": "payout",
        "winning_outcome": 1, "outcome_prices": [0, 1], "token_ids": ["101", "102"],
    }  # fmt: skip


def test_resolved_is_final(conn):
    paid = market(1, status="RESOLVED", winning_outcome=0, outcome_prices=[1_000_000, 0])
    store(conn, [market(1)], cause="listed")
    store(conn, [paid], cause="socket")

    for stale in (market(1, volume_usd=9), market(1, status="CLOSED", volume_usd=9)):
        assert store(conn, [stale], cause="walk") == StoreResult()

    assert (one(conn, "status"), one(conn, "winning_outcome"), one(conn, "outcome_prices")) == (
        "RESOLVED",
        0,
        [1_000_000, 0],
    )
    assert store(conn, [{**paid, "volume_usd": 9}], cause="walk") == StoreResult(changed=1)


def test_a_closed_market_opens_again_only_on_newer_word(conn):
    newer, older = ('{"updatedAt": "2026-03-01T00:00:00Z"}', '{"updatedAt": "2026-02-01T00:00:00Z"}')
    closing = '{"updatedAt": "2026-02-15T00:00:00Z"}'
    store(conn, [market(1)], cause="listed")
    store(conn, [market(1, status="CLOSED", closed_at=datetime(2026, 2, 15, tzinfo=UTC), raw=closing)], cause="ended")

    assert store(conn, [market(1, raw=older)], cause="walk") == StoreResult()
    assert one(conn, "status") == "CLOSED"
    assert store(conn, [market(1, raw=newer)], cause="walk") == StoreResult(changed=1, status_changes=1)
    assert (one(conn, "status"), one(conn, "closed_at")) == ("ACTIVE", None)


def test_taking_stock_tells_nobody(conn):
    stored = store(conn, [market(1)], cause="discovered", announce_new=False)

    assert stored == StoreResult(inserted=1)
    assert told(conn) == []
    assert conn.execute("select count(*) from market_status_changes").fetchone() == (0,)


def test_repeats_in_one_batch_are_read_as_one(conn):
    rows = [market(1), {"market_id": f"0x{1:064x}", "status": "RESOLVED", "winning_outcome": 0}, market(2), market(2)]

    assert store(conn, rows, cause="listed") == StoreResult(inserted=2, status_changes=2)

    assert (one(conn, "status"), one(conn, "question")) == ("RESOLVED", "Will it be 1?")


def test_an_id_that_names_another_market_moves_to_it(conn):
    store(conn, [market(1), market(2)], cause="listed")

    store(conn, [market(3, gamma_id="1", token_ids=["101", "302"])], cause="walk")
    store(conn, [market(4, gamma_id="7"), market(5, gamma_id="7")], cause="walk")

    assert [one(conn, "gamma_id", number) for number in (1, 2, 3, 4, 5)] == [None, "2", "1", None, "7"]
    owner = "select market_id from tokens join markets using (market_key) where token_id = '101'"
    assert conn.execute(owner).fetchone() == (f"0x{3:064x}",)


def test_what_the_database_refuses_is_kept_aside_and_the_rest_stored(conn):
    rows = [market(number) for number in range(1, 9)]
    rows[4]["volume_usd"] = 2**70
    rows[6]["status"] = "UNHEARD OF"

    stored = store(conn, rows, cause="walk", announce_new=False)

    assert stored == StoreResult(inserted=6, refused=2)
    reasons = [row[0] for row in conn.execute("select reason from quarantine order by quarantine_id")]
    assert "out of range" in reasons[0]
    assert "status" in reasons[1]
    payload = conn.execute("select payload from quarantine order by quarantine_id limit 1").fetchone()[0]
    assert json.loads(payload)["market_id"] == f"0x{5:064x}"


def test_text_that_postgres_cannot_hold_is_cleaned(conn):
    raw = json.dumps({"description": "a\0b", "path": "c:\\u0000"})

    store(conn, [market(1, question="a\0b", tags=["x\0"], raw=raw)], cause="walk")

    assert (one(conn, "question"), one(conn, "tags")) == ("ab", ["x"])
    assert one(conn, "raw") == {"description": "ab", "path": "c:\\u0000"}


def test_objects_without_a_condition_are_passed_over(conn):
    assert store(conn, [market(1, market_id="")], cause="walk") == StoreResult()


def test_events_are_kept_up_with_their_markets(conn):
    event = {
        "event_id": "7",
        "title": "Election",
        "tags": ["politics"],
        "closed": False,
        "start_time": datetime(2026, 1, 1, tzinfo=UTC),
    }
    store(conn, [market(1, event_id="7")], cause="walk", events=[event, event])
    before = conn.execute("select xmin from events").fetchall()

    store(conn, [], cause="walk", events=[event | {"tags": []}])
    unchanged = conn.execute("select xmin from events").fetchall()
    store(conn, [], cause="walk", events=[event | {"title": "The election", "closed": True}])

    assert unchanged == before
    assert conn.execute("select title, closed, tags, start_time from events").fetchall() == [
        ("The election", True, ["politics"], datetime(2026, 1, 1, tzinfo=UTC))
    ]


def test_writers_at_once_neither_lose_nor_repeat(database_url):
    faults = []

    def write(cause):
        try:
            with database.connect(database_url, autocommit=True) as mine:
                for _ in range(10):
                    store(mine, [market(number) for number in range(40, 0, -1)], cause=cause)
                    store(mine, [market(number, status="CLOSED") for number in range(1, 41)], cause=cause)
        except Exception as fault:  # noqa: BLE001
            faults.append(fault)

    writers = [threading.Thread(target=write, args=(f"writer {number}",)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert faults == []
    with database.connect(database_url) as conn:
        messages = told(conn)
        assert [message["seq"] for message in messages] == list(range(1, len(messages) + 1))
        per_market = {}
        for message in messages:
            per_market.setdefault(message["market_id"], []).append(
                (message["data"]["from_status"], message["data"]["to_status"])
            )
        assert len(per_market) == 40
        for steps in per_market.values():  # each step starts where the one before ended
            assert [was for was, _ in steps] == [None, *(became for _, became in steps[:-1])]


def test_a_walk_over_many_pages_is_stored_in_seconds(database_url, conn):  # a database without other tests' rows
    description = "What decides how this market resolves, in words and at length. " * 60  # 4 kB, as they are
    rows = [market(number, description=description, raw=json.dumps({"d": description})) for number in range(1, 1501)]
    pages = [rows[start : start + 100] for start in range(0, 1500, 100)]
    began = time.monotonic()

    first = sum((store(conn, page, cause="walk", announce_new=False) for page in pages), StoreResult())
    second = sum((store(conn, page, cause="walk") for page in pages), StoreResult())

    assert (first, second) == (StoreResult(inserted=1500), StoreResult())
    assert time.monotonic() - began < 30  # one on a quiet machine
