import datetime as dt
import json

import pytest

from orchestration.ingest.gaps.starts import LISTED
from tests.cluster.missing import explained
from tests.factories import insert
from tests.soak.audit import audit

NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)
MS = int(NOW.timestamp() * 1000)
TX = "0x" + "ab" * 32


@pytest.fixture
def market(database_url, add_market):
    return add_market()


@pytest.fixture
def audited(database_url, market, tmp_path):
    """Audit ten seconds of a log of trades and levels, each a number of milliseconds after the beginning."""

    def check(*, trades=(), levels=()):
        common = {"token": market["token_ids"][0], "side": "BUY", "price": "0.5", "size": "10"}
        lines = [{"kind": "trade", "ts_ms": MS + at, "tx": TX, **common} for at in trades]
        lines += [{"kind": "level", "ts_ms": MS + at, **common} for at in levels]
        log = tmp_path / "truth.jsonl"
        log.write_text("".join(json.dumps({"n": n, **line}) + "\n" for n, line in enumerate(lines, 1)))
        return audit(database_url, log, from_ms=MS, to_ms=MS + 10_000)

    return check


@pytest.fixture
def stored(conn, market):
    def add_trade(at):
        row = {"price": "0.5", "size": 10, "side": 1, "tx_hash": bytes.fromhex(TX[2:])}
        row |= {"price": 500_000, "size": 10_000_000, "value_usd": 5_000_000, "trade_id": at, "seq": at}
        ts = NOW + dt.timedelta(milliseconds=at)
        insert(conn, "trades", {"ts": ts, "market_key": market["market_key"], "outcome": 0, **row})

    return add_trade


@pytest.fixture
def gap(conn, market):
    def add(kind, start, end, *, own=True, filled=False, cause="silent"):
        row = {"kind": kind, "market_key": market["market_key"] if own else None, "cause": cause}
        span = {name: NOW + dt.timedelta(milliseconds=at) for name, at in (("from_ts", start), ("to_ts", end))}
        insert(conn, "coverage_gaps", {**row, **span, "filled_at": NOW if filled else None})

    return add


def test_what_is_stored_once_is_well_whoever_gave_its_instant(audited, stored):
    stored(1_000)

    report = audited(trades=[1_450])

    assert (report.compared["trades"], report.lost, report.doubled, report.unrecorded) == (1, {}, {}, {})


def test_what_is_missing_and_in_no_gap_is_unrecorded(audited, gap):
    gap("books", 0, 2_000)
    gap("trades", 3_000, 4_000)

    report = audited(trades=[1_000], levels=[3_500])

    assert {row[0] for row in report.unrecorded} == {"trades", "level changes"}
    with pytest.raises(AssertionError, match="2 unrecorded"):
        report.assert_clean()


def test_a_change_in_the_millisecond_of_the_first_book_is_in_that_book(audited, conn, market):
    for at in (1_000, 2_000):
        ts = NOW + dt.timedelta(milliseconds=at)
        row = {"market_key": market["market_key"], "outcome": 0, "event_id": at, "seq": at}
        insert(conn, "book_events", {"ts": ts, **row})

    report = audited(levels=[1_000, 2_000])

    assert [row[2] for row in report.in_first_book] == [MS + 1_000]
    assert [row[2] for row in report.unrecorded] == [MS + 2_000], "a later book follows changes that were received"


@pytest.mark.parametrize("own", [True, False])
def test_what_a_gap_says_is_missing_is_neither_lost_nor_unrecorded(audited, gap, own):
    gap("books", 500, 2_000, own=own)
    gap("trades", 500, 2_000, own=own, filled=True)

    report = audited(trades=[1_000], levels=[600])

    assert report.missing == {"level changes": 1}
    assert [row[0] for row in report.lost] == ["trades"], "in a filled gap nothing may be missing"
    assert not report.unrecorded


def test_what_is_stored_twice_or_was_never_said_is_doubled(audited, stored):
    stored(1_000)
    stored(1_001)

    assert audited(trades=[1_000]).doubled.total() == 1
    assert audited(levels=[1_000]).doubled.total() == 2


def test_each_missing_row_is_explained_and_gaps_of_a_new_market_are_told_from_others(audited, database_url, gap):
    gap("books", 500, 2_000)
    gap("books", 5_000, 6_000, cause=LISTED)
    report = audited(levels=[600, 5_500], trades=[8_000])

    outside_starts, explanations = explained(database_url, report)

    assert [row[2] for row in outside_starts] == [MS + 600]
    assert [name for name in explanations if name.startswith("not stored")] == [f"not stored {n}" for n in (1, 2)]
    assert "'silent'" in explanations["not stored 2"], "the gaps around it"
    assert [name for name in explanations if name.startswith("market in a gap")] == ["market in a gap 1"]
