"""What is dropped, and what never is."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from config.settings import Settings
from orchestration import stream
from orchestration.maintenance import retention
from tests import stream_rows
from tests.factories import insert

NOW = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)
SETTINGS = Settings(trades_retention_days=100, books_retention_days=10, stream_retention_h=24)
numbers = itertools.count(1)


def count(conn, table):
    return conn.execute(f"select count(*) from {table}").fetchone()[0]


@pytest.mark.license("apache")  # under the other one passes write candles, and those cannot run in a transaction
def test_chunks_beyond_their_days_go_and_candles_stay(conn, add_market, add_trades):
    market = add_market()
    for days in (0, 20, 99, 102, 150):
        ts = NOW - timedelta(days=days)
        add_trades(market, [{"ts": ts}])
        key = {"ts": ts, "market_key": market["market_key"], "outcome": 0}
        insert(conn, "quotes", {**key, "bid": 1})
        insert(conn, "book_events", {**key, "event_id": next(numbers), "seq": 1})
    candles = count(conn, "candles_1m"), count(conn, "candles_1h")

    dropped = retention.drop_old(conn, SETTINGS, NOW)

    assert (dropped["trades"], dropped["quotes"], dropped["book_events"]) == (2, 4, 4)
    assert [count(conn, table) for table in ("trades", "quotes", "book_events")] == [3, 1, 1]
    assert (count(conn, "candles_1m"), count(conn, "candles_1h")) == candles == (5, 5)


@pytest.mark.parametrize(("stage", "ago"), [(None, 0), ("ingestion", 30), ("settlement", 30)])
def test_a_clock_that_is_ahead_drops_nothing_too_early(conn, add_market, stage, ago):
    """The database's clock, too, may be ahead: then the newest data, 30 days old by it, tells."""
    newest = datetime.now(UTC) - timedelta(days=ago)
    conn.execute("update stage_clocks set last_data_at = %s where stage = %s", [newest, stage])
    conn.execute("update stage_clocks set last_data_at = now() where stage = 'aggregates'")  # the host's clock
    insert(conn, "quotes", {"ts": newest - timedelta(days=8), "market_key": add_market()["market_key"], "outcome": 0})

    dropped = retention.drop_old(conn, SETTINGS, datetime.now(UTC) + timedelta(days=365))

    assert dropped["quotes"] == 0


def test_a_chunk_with_one_row_in_time_is_kept(conn, add_market, add_trades):
    edge = datetime(NOW.year, NOW.month, NOW.day, tzinfo=UTC) - timedelta(days=100)
    add_trades(add_market(), [{"ts": edge + timedelta(hours=1)}, {"ts": edge + timedelta(hours=23)}])

    dropped = retention.drop_old(conn, SETTINGS, edge + timedelta(days=100, hours=12))

    assert dropped["trades"] == 0


@pytest.mark.parametrize(("kind", "table", "days"), [("trades", "trades", 100), ("books", "book_events", 10)])
def test_a_gap_is_forgotten_together_with_the_data_of_its_day(conn, add_market, kind, table, days):
    key = {"market_key": add_market()["market_key"], "outcome": 0, "seq": 1}
    row = {"trade_id": 1, "side": 1, "price": 1, "size": 1, "value_usd": 1} if kind == "trades" else {"event_id": 1}
    edge = NOW - timedelta(days=days)
    for ago in (timedelta(hours=8), timedelta(days=1)):  # the day's other rows are still within retention
        insert(conn, table, {**key, **row, "ts": edge - ago})
        gap = {"kind": kind, "from_ts": edge - ago, "to_ts": edge - ago + timedelta(hours=1), "cause": "asleep"}
        insert(conn, "coverage_gaps", gap)

    dropped = retention.drop_old(conn, SETTINGS, NOW)

    assert (dropped[table], dropped["coverage_gaps"]) == (1, 1)
    assert (count(conn, table), count(conn, "coverage_gaps")) == (1, 1)


def test_deliveries_that_were_over_long_ago_are_forgotten_and_those_that_wait_are_not(conn, monkeypatch):
    monkeypatch.setattr(retention, "BATCH_ROWS", 2)
    account = insert(conn, "accounts", {"email": "hooks@example.com", "app_name": "tests"})
    hook = {"account_id": account["account_id"], "url": "https://example.com/", "secret": "whsec_", "since_seq": 0}
    hook = insert(conn, "webhooks", {**hook, "events": ["trade"]})
    delivery = {"webhook_id": hook["webhook_id"], "type": "trade", "body": "{}", "created_at": NOW - timedelta(days=90)}
    for days in (31, 32, 33, 29):
        insert(conn, "webhook_deliveries", {**delivery, "state": "failed", "ended_at": NOW - timedelta(days=days)})
    insert(conn, "webhook_deliveries", {**delivery, "next_at": NOW - timedelta(days=90)})

    dropped = retention.drop_old(conn, SETTINGS, NOW)

    assert dropped["webhook_deliveries"] == 3
    assert count(conn, "webhook_deliveries") == 2


def test_the_audit_trail_is_dropped_by_whole_months_and_replaced_keys_with_it(conn):
    account = insert(conn, "accounts", {"email": "me@example.com", "app_name": "bot"})["account_id"]
    key = {"account_id": account, "key_hash": b"1", "prefix": "x", "tier": "free"}
    key_id = insert(conn, "api_keys", key)["key_id"]
    for days in (440, 431, 399, 1):
        insert(conn, "audit_log", {"ts": NOW - timedelta(days=days), "action": "key.rotate", "result": str(days)})
        insert(conn, "ended_keys", {"key_hash": b"%d" % days, "key_id": key_id, "ended_at": NOW - timedelta(days=days)})

    dropped = retention.drop_old(conn, Settings(audit_retention_days=400), NOW)

    assert dropped["audit_log"] >= 1
    assert dropped["ended_keys"] == 2
    assert conn.execute("select result from audit_log order by ts").fetchall() == [("399",), ("1",)]
    assert count(conn, "ended_keys") == 2


def events(conn, *told):
    for seq, age in told:
        stream_rows.add(conn, seq, [stream.message("trade", 0, None, {})], NOW - age)


def test_stream_events_go_by_number_once_their_whole_chunk_is_old(conn):
    day, hour = timedelta(days=1), timedelta(hours=1)
    events(
        conn, (5, 3 * day), (1_500_000, 2 * day), (2_000_001, day + hour), (2_000_002, day - hour), (2_000_009, hour)
    )

    found = retention.first_block_since(conn, NOW - day)
    dropped = retention.drop_old(conn, SETTINGS, NOW)

    assert found == 2_000_002
    assert dropped["stream_events"] == 2
    assert [row.seq for row in stream_rows.rows(conn)] == [
        2_000_001,
        2_000_002,
        2_000_009,
    ]


def test_the_first_event_since_an_instant_is_found_at_both_ends(conn):
    assert retention.first_block_since(conn, NOW) is None

    events(conn, (7, timedelta(hours=2)), (8, timedelta(hours=1)))

    assert retention.first_block_since(conn, NOW - timedelta(hours=3)) == 7
    assert retention.first_block_since(conn, NOW) == 9  # all are older: whatever comes next


def test_what_runs_left_behind_goes_by_rows(conn):
    for days in (0, 2):
        beat = NOW - timedelta(days=days)
        insert(
            conn,
            "feed_leases",
            {"run_id": f"{days}", "feed": "all", "role": "gone", "window_ends_at": beat, "beat_at": beat},
        )
        insert(conn, "feed_hosts", {"host": f"{days}", "instance": "1", "beat_at": beat})
    for days in (0, 29, 31):
        insert(
            conn, "quarantine", {"ts": NOW - timedelta(days=days), "source": "gamma", "reason": "?", "payload": "{}"}
        )

    dropped = retention.drop_old(conn, SETTINGS, NOW)

    gone = "feed_leases", "feed_hosts", "quarantine"
    assert [dropped[table] for table in gone] == [1, 1, 1]
    assert [count(conn, table) for table in gone] == [1, 1, 2]


def block(conn, number, age, logs=2):
    insert(conn, "chain_blocks", {"number": number, "hash": b"h" * 32, "ts": NOW - age, "logs": logs})


def test_what_is_no_longer_held_of_the_chain_does_not_count_as_indexed(conn):
    days = Settings().settlements_retention_days
    for number, age in ((10, days + 3), (11, days + 2), (20, days - 2), (21, 1)):
        block(conn, number, timedelta(days=age))
    fill = {
        "block_number": 10,
        "log_index": 1,
        "tx_hash": b"t" * 32,
        "contract_key": 1,
        "token_key": 1,
        "maker": b"m" * 20,
        "taker": b"t" * 20,
        "side": 1,
        "size": 1,
        "value_usd": 1,
        "fee_usd": 0,
        "is_taker_order": False,
        "counted": True,
    }
    insert(conn, "settlements", {**fill, "ts": NOW - timedelta(days=days + 3)})
    insert(conn, "settlements", {**fill, "ts": NOW - timedelta(days=1), "block_number": 21})
    insert(conn, "chain_ranges", {"from_block": 1, "to_block": 5, "logs": 0})
    insert(conn, "chain_ranges", {"from_block": 10, "to_block": 21, "logs": 8})
    insert(conn, "chain_checks", {"from_block": 10, "to_block": 20})
    insert(conn, "chain_heads", {"feed": "settlement", "head": 21, "finalized": 21, "indexed": 21})
    conn.execute("update positions_head set base_block = 11")

    dropped = retention.drop_old(conn, Settings(), NOW)

    assert dropped["settlements"] == 1
    assert dropped["chain_days_held_for_positions"] == 0
    assert count(conn, "settlements") == 1
    assert conn.execute("select number from chain_blocks order by 1").fetchall() == [(20,), (21,)]
    assert conn.execute("select from_block, to_block, logs from chain_ranges").fetchall() == [(12, 21, 4)]
    assert conn.execute("select from_block, to_block from chain_checks").fetchall() == [(12, 20)]
    assert conn.execute("select detail ->> 'floor' from chain_heads").fetchone() == ("12",)


def test_wallets_activity_is_kept_for_ninety_days(conn):
    row = {
        "wallet": b"w" * 20,
        "block_number": 1,
        "log_index": 1,
        "is_taker": False,
        "tx_hash": b"t" * 32,
        "contract_key": 1,
        "token_key": 1,
        "counterparty": b"c" * 20,
        "side": 1,
        "size": 1,
        "value_usd": 1,
    }
    for days in (10, 89, 98):
        insert(conn, "wallet_activity", {**row, "fee_usd": 0, "ts": NOW - timedelta(days=days)})

    retention.drop_old(conn, Settings(), NOW)

    assert count(conn, "wallet_activity") == 2


def test_results_of_data_quality_that_held_go_sooner_than_failures(conn):
    result = {"suite": "trades", "name": "price", "stage": "ingestion", "severity": "fail", "rows_checked": 5}
    for days, failed in ((1, 0), (4, 0), (4, 1), (89, 2), (91, 3)):
        insert(conn, "quality_results", {**result, "ran_at": NOW - timedelta(days=days), "rows_failed": failed})

    dropped = retention.drop_old(conn, SETTINGS, NOW)

    assert dropped["quality_results"] == 2
    left = conn.execute("select rows_failed from quality_results order by 1").fetchall()
    assert left == [(0,), (1,), (2,)]
