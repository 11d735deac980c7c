import msgspec
import pytest

from orchestration.ingest.storage.leader import LeaderConnection
from orchestration.ingest.storage.rows import Change, Quote, Refusal, Snapshot, Tick, WriteBatch
from tests.orchestration.ingest.builders import NOW, token, trades

TOO_LARGE = 1 << 70


@pytest.fixture
def leader(database_url):
    leader = LeaderConnection(database_url, "polymarket")
    assert leader.try_lead()
    yield leader
    leader.resign()


@pytest.mark.parametrize(
    "rows",
    [
        {"changes": [Change(token(), NOW, 0, 1, 1, 400_000, TOO_LARGE, "", False, None, None, 0, None)]},
        {"ticks": [Tick(token(), NOW, None, TOO_LARGE)] * 2},
        {"snapshots": [Snapshot(token(), NOW, 9, 1, [(400_000, TOO_LARGE)], [], "")]},
        {"refusals": [Refusal("market_socket", "a zero byte", "\0")] * 2},
    ],
    ids=["changes", "ticks", "snapshots", "refusals"],
)
def test_rows_of_several_kinds_that_cannot_be_stored_go_to_quarantine_one_by_one(leader, conn, rows):
    [trade] = trades(1)
    batch = WriteBatch(trades=[msgspec.structs.replace(trade, size=TOO_LARGE)], **rows)

    _, refused = leader.write(batch, (), (), replay=False)

    assert refused == len(batch)
    assert conn.execute("select count(*) from quarantine").fetchone() == (len(batch),)


def test_a_snapshot_that_cannot_be_stored_takes_no_other_row_with_it(leader, conn):
    good, bad = (Snapshot(token(), NOW, size, 1, [(400_000, size)], [], "") for size in (5, TOO_LARGE))
    quote = Quote(token(), NOW, 400_000, None, 5, None)

    written, refused = leader.write(WriteBatch(snapshots=[bad, good], quotes={("1", NOW): quote}), (), (), replay=False)

    assert (written.events, written.quotes, refused) == (1, 1, 1)
    assert conn.execute("select bid_sizes from book_events").fetchall() == [([5],)]
    assert conn.execute("select bid from quotes").fetchall() == [(400_000,)]
