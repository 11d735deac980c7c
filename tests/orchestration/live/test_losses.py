import pytest

from orchestration.live.losses import UNCHANGED, Loss, Losses
from tests.orchestration.live.making import NOW, token


@pytest.fixture
def losses():
    return Losses("run-1")


def gaps(conn):
    return conn.execute(
        "select kind, market_key, as_ms(from_ts), as_ms(to_ts), cause, run_id, filled_by"
        " from coverage_gaps order by gap_id"
    ).fetchall()


def test_a_loss_of_everything_is_a_gap_of_each_kind(losses, conn):
    loss = losses.add(Loss("silent", NOW, None, None))
    losses.save(conn)
    assert gaps(conn) == [
        ("books", None, NOW, None, "silent", "run-1", None),
        ("trades", None, NOW, None, "silent", "run-1", None),
    ]

    loss.to_ms = NOW + 700
    losses.save(conn)
    losses.save(conn)
    assert [gap[3] for gap in gaps(conn)] == [NOW + 700, NOW + 700]
    assert losses.all == []


def test_a_loss_of_some_markets_names_them(losses, conn):
    losses.add(Loss.of("mismatch", [token(5, 0), token(5, 1), token(6, 0)], NOW, NOW + 5, kinds=("books",)))
    losses.save(conn)

    assert [(gap[0], gap[1], gap[3]) for gap in gaps(conn)] == [("books", 5, NOW + 5), ("books", 6, NOW + 5)]


def test_a_loss_in_which_nothing_happened_is_no_gap(losses, conn):
    short = losses.add(Loss("closed", NOW, None, None))
    short.to_ms, short.missed = NOW + 300, False
    long = losses.add(Loss("silent", NOW, None, None))
    losses.save(conn)
    long.to_ms, long.missed = NOW + 9000, False
    losses.save(conn)

    assert {(gap[4], gap[6]) for gap in gaps(conn)} == {("silent", UNCHANGED)}


def test_a_standby_forgets_what_was_over_before_the_leaders_last_commit(losses):
    over, later, still = Loss("closed", 1, None, None), Loss("closed", 2, None, None), Loss("closed", 3, None, None)
    over.to_ms, later.to_ms = 5, 15
    for loss in (over, later, still):
        losses.add(loss)

    losses.forget(10)

    assert losses.all == [later, still]
    assert losses.open() == [still]
