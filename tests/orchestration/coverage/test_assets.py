"""Coverage under Dagster: gaps filled each hour, days reconciled each night."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import dagster as dg
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from config import settings
from orchestration.assets import coverage
from orchestration.coverage import days
from orchestration.settlement.follow import Follower
from orchestration.settlement.ranges import Ranges
from orchestration.settlement.writer import Writer
from tests.chain import Chain, events
from tests.factories import add_market, add_trades, insert
from tests.orchestration.coverage.conftest import DAY, NOON
from tests.orchestration.settlement import truth
from tests.orchestration.settlement.plain import Plain
from upstream.chain.contracts import POLYGON

ROOT = Path(__file__).parents[3]
NIGHT = dt.datetime(DAY.year, DAY.month, DAY.day, 3, 20, tzinfo=dt.UTC) + dt.timedelta(days=1)


@pytest.fixture
def make(make, db):
    """Materialise assets; the database knows the exchange's markets."""
    return make


@pytest.fixture
def configured(monkeypatch, anvil):
    """Configure a chain: the tests' node."""
    monkeypatch.setenv("PRESAGE_CHAIN_RPC_URLS", anvil.url)
    settings.get.cache_clear()
    yield
    monkeypatch.undo()
    settings.get.cache_clear()


def told(run, asset):
    (event,) = run.asset_materializations_for_node(asset)
    return {name: value.value for name, value in event.metadata.items()}


def test_a_pass_over_the_gaps_says_what_it_filled_and_what_is_left(make, db, traded):
    insert(
        db, "coverage_gaps", {"kind": "trades", "from_ts": NOON, "to_ts": NOON + dt.timedelta(hours=1), "cause": "?"}
    )
    insert(db, "coverage_gaps", {"kind": "books", "from_ts": NOON, "to_ts": NOON + dt.timedelta(hours=1), "cause": "?"})

    figures = told(make(coverage.coverage_gaps), "coverage_gaps")

    assert (figures["filled"], figures["trades_added"]) == (1, len(traded))
    assert (figures["books lost"], figures["trades filled"]) == (1, 1)


def test_a_day_is_counted_as_its_partition(make, traded):
    figures = told(make(coverage.reconciled_trades, partition_key=str(DAY)), "reconciled_trades")

    assert (figures["listed"], figures["held"], figures["added"]) == (len(traded), len(traded), len(traded))
    assert figures["agrees"] is True


def test_where_no_chain_is_followed_its_part_says_so(make):
    figures = told(make(coverage.reconciled_settlements, partition_key=str(DAY)), "reconciled_settlements")

    assert "PRESAGE_CHAIN_RPC_URLS" in figures["off"]


@pytest.mark.usefixtures("configured")
def test_the_logs_of_a_day_are_counted_block_by_block_and_what_was_left_out_is_written(make, db, anvil):
    chain = Chain(anvil, genesis_s=int(NOON.timestamp()))
    chain.extend([[events.match_v2([events.fill_v2(maker=events.wallet(n % 7 + 1))])] for n in range(100)])
    list(Ranges(Writer(db, POLYGON), Plain(chain), POLYGON).fill(0, 30))
    whole = truth.settlements(db)
    db.execute("update chain_blocks set logs = logs - 1 where number = 20")
    db.execute("delete from settlements where block_number = 20 and log_index = 0")

    run = make(coverage.reconciled_settlements, partition_key=str(DAY))
    empty = make(coverage.reconciled_settlements, partition_key=str(DAY - dt.timedelta(days=1)))

    figures = told(run, "reconciled_settlements")
    assert (figures["from_block"], figures["to_block"], figures["agrees"]) == (1, 30, True)
    assert (figures["added"], figures["unlisted"]) == (1, 0)
    assert figures["listed"] == db.execute("select sum(logs) from chain_blocks").fetchone()[0]
    assert truth.settlements(db) == whole
    assert db.execute("select day, kind, added, agrees from coverage_days order by day").fetchall() == [
        (DAY - dt.timedelta(days=1), "settlements", 0, True),
        (DAY, "settlements", 1, True),
    ]
    assert told(empty, "reconciled_settlements")["blocks"] == 0


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(("unsettled", "agrees"), [(10, True), (11, False)])
def test_a_day_whose_trades_are_settled_by_a_contract_that_is_not_followed_does_not_agree(
    make, db, anvil, unsettled, agrees
):
    chain = Chain(anvil, genesis_s=int(NOON.timestamp()))
    chain.extend([[events.match_v2([events.fill_v2(maker=events.wallet(n % 7 + 1))])] for n in range(100)])
    list(Ranges(Writer(db, POLYGON), Plain(chain), POLYGON).fill(0, 99))
    settled = [tx for (tx,) in db.execute("select distinct tx_hash from settlements order by 1 limit 5")]
    hashes = [*settled, *(bytes([n]) * 32 for n in range(unsettled))]
    at = db.execute("select min(ts) from settlements").fetchone()[0]
    add_trades(db, add_market(db, "settled"), [{"ts": at, "tx_hash": tx} for tx in hashes])
    add_trades(db, add_market(db, "later"), [{"ts": at + dt.timedelta(hours=5), "tx_hash": bytes(32)}])

    figures = told(make(coverage.reconciled_settlements, partition_key=str(DAY)), "reconciled_settlements")

    assert (figures["listed"], figures["unknown"], figures["agrees"]) == (figures["held"], unsettled, agrees)
    assert figures["trades"] == len(hashes), "the later one's block is not indexed"
    assert db.execute("select unknown, agrees from coverage_days").fetchone() == (unsettled, agrees)


@pytest.mark.usefixtures("configured")
def test_a_day_without_any_block_is_counted_as_nothing_and_not_due_again(make, db):
    before = DAY - dt.timedelta(days=1)
    insert(db, "settings", {"name": "recorded_since", "value": str(int(NOON.timestamp() - 86_400) * 1000)})
    assert [*days.due(db, NIGHT, {"polymarket": ["settlements"]})] == [before, DAY]

    figures = told(make(coverage.reconciled_settlements, partition_key=str(before)), "reconciled_settlements")

    assert (figures["listed"], figures["held"], figures["blocks"], figures["agrees"]) == (0, 0, 0, True)
    assert [*days.due(db, NIGHT, {"polymarket": ["settlements"]})] == [DAY]


@pytest.fixture
def both_recorded(monkeypatch, tmp_path):
    """Configure two exchanges without a chain."""
    key = tmp_path / "key.pem"
    key.touch(mode=0o600)
    pem = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    key.write_bytes(Ed25519PrivateKey.generate().private_bytes(*pem))
    given = {"KALSHI_KEY_ID": "a-key", "KALSHI_PRIVATE_KEY_FILE": str(key), "CHAIN_RPC_URLS": ""}
    for name, value in {**given, "EXCHANGES": "polymarket,kalshi"}.items():
        monkeypatch.setenv(f"PRESAGE_{name}", value)
    settings.get.cache_clear()
    yield
    monkeypatch.undo()
    settings.get.cache_clear()


@pytest.mark.usefixtures("both_recorded")
def test_each_night_asks_for_what_is_missing_of_each_exchange(requested, db):
    before = DAY - dt.timedelta(days=1)
    since = "insert into settings (name, value) values (%s, to_jsonb(as_ms(%s::timestamptz)))"
    db.execute(since, ["recorded_since", before])
    db.execute(since, ["recorded_since_kalshi", DAY])
    counts = dict.fromkeys(("listed", "held", "added", "unlisted", "unknown"), 0)
    insert(db, "coverage_days", {"kind": "trades", "day": DAY, "agrees": True, **counts})

    runs = requested(coverage.reconciliation_each_day, NIGHT)

    assert {run.partition_key: [key.to_user_string() for key in run.asset_selection] for run in runs} == {
        f"{before}": ["reconciled_trades"],
        f"{DAY}": ["kalshi_reconciled_trades"],
    }


@pytest.mark.usefixtures("configured")
def test_a_day_is_due_until_the_feed_has_indexed_all_of_its_blocks(make, db, anvil):
    before, after = DAY - dt.timedelta(days=1), DAY + dt.timedelta(days=1)
    insert(db, "settings", {"name": "recorded_since", "value": str(int(NOON.timestamp() - 86_400) * 1000)})
    chain = Chain(anvil, genesis_s=int(NOON.timestamp()), block_s=720)
    chain.extend([[events.match_v2([events.fill_v2(maker=events.wallet(n % 7 + 1))])] for n in range(40)])
    following = Follower(
        Writer(db, POLYGON), Plain(chain, finality=10), POLYGON, start=3, patience_s=0.0, jump=100, check_blocks=1000
    )

    def reconciled(*wanted):
        for day in wanted:
            make(coverage.reconciled_settlements, partition_key=str(day))
        return {day for (day,) in db.execute("select day from coverage_days where agrees")}

    while following.step().behind:
        pass
    assert reconciled(before, DAY) == {before}, "the feed ends on the evening"

    chain.extend([[events.match_v2([events.fill_v2()])] for _ in range(200)])
    while following.step().behind:
        pass
    assert db.execute("select from_block, to_block from chain_holes").fetchall() == [(41, 230)]
    assert reconciled(before, DAY, after) == {before}, "the hole begins on the evening"
    assert [*days.due(db, NIGHT, {"polymarket": ["settlements"]})] == [DAY]

    while following.step().written.blocks:
        pass
    assert reconciled(DAY) == {before, DAY}
    (detail,) = db.execute("select detail from coverage_days where day = %s", [DAY]).fetchone()
    assert (detail["from_block"], detail["to_block"]) == (3, 59)
    assert [*days.due(db, NIGHT, {"polymarket": ["settlements"]})] == []


def test_days_are_counted_one_at_a_time():
    limits = yaml.safe_load((ROOT / "dagster.yaml").read_text())["concurrency"]["runs"]["tag_concurrency_limits"]

    assert {"key": "presage/reconciliation", "limit": 1} in limits
    assert "presage/reconciliation" in coverage.reconciliation_job.tags


def test_the_night_asks_for_the_days_that_are_due(tick, db):
    nothing = tick(coverage.reconciliation_each_day, NIGHT)
    insert(
        db,
        "feed_stats",
        {"ts": NOON, "feed": "polymarket", "run_id": "r", "messages": 1, "rows": 1, "lag_counts": []},
    )
    night = tick(coverage.reconciliation_each_day, NIGHT)
    two_nights = tick(coverage.reconciliation_each_day, NIGHT + dt.timedelta(days=1))

    assert (nothing, night) == ([], [str(DAY)])
    assert two_nights == [str(DAY), str(DAY + dt.timedelta(days=1))], "the night after one that failed"
    assert coverage.reconciliation_job.name == "reconciliation"


def test_the_check_warns_of_days_that_differ(make, db):
    row = {"day": dt.datetime.now(dt.UTC).date() - dt.timedelta(days=1), "kind": "trades", "listed": 5, "held": 4}
    insert(db, "coverage_days", {**row, "added": 0, "unlisted": 0, "unknown": 1, "agrees": False})

    run = make(
        coverage.coverage_gaps,
        coverage.coverage_reconciled,
        selection=dg.AssetSelection.checks_for_assets("coverage_gaps"),
    )

    (found,) = run.get_asset_check_evaluations()
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "1 of 30 days differ" in found.description
