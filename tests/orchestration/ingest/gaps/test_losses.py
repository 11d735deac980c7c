import pytest

from orchestration.ingest.gaps import losses as module
from orchestration.ingest.gaps.losses import LEFT_S, MAX_UNSAVED, UNCHANGED, Loss, Losses
from sql.queries import feed as queries
from tests.orchestration.ingest.builders import NOW, save, token


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
    save(losses, conn)
    assert gaps(conn) == [
        ("books", None, NOW, None, "silent", "run-1", None),
        ("trades", None, NOW, None, "silent", "run-1", None),
    ]

    loss.to_ms = NOW + 700
    save(losses, conn)
    save(losses, conn)
    assert [gap[3] for gap in gaps(conn)] == [NOW + 700, NOW + 700]
    assert losses.all == []


def test_a_loss_of_some_markets_names_them(losses, conn):
    losses.add(Loss.of("mismatch", [token(5, 0), token(5, 1), token(6, 0)], NOW, NOW + 5, kinds=("books",)))
    save(losses, conn)

    assert [(gap[0], gap[1], gap[3]) for gap in gaps(conn)] == [("books", 5, NOW + 5), ("books", 6, NOW + 5)]


def test_a_loss_in_which_nothing_happened_is_no_gap(losses, conn):
    short = losses.add(Loss("closed", NOW, None, None))
    short.to_ms, short.missed = NOW + 300, False
    long = losses.add(Loss("silent", NOW, None, None))
    save(losses, conn)
    long.to_ms, long.missed = NOW + 9000, False
    save(losses, conn)

    assert {(gap[4], gap[6]) for gap in gaps(conn)} == {("silent", UNCHANGED)}


def test_a_standby_forgets_what_was_over_before_the_leaders_last_commit(losses):
    over, later, still = Loss("closed", 1, None, None), Loss("closed", 2, None, None), Loss("closed", 3, None, None)
    over.to_ms, later.to_ms = 5, 15
    for loss in (over, later, still):
        losses.add(loss)

    losses.forget(10)

    assert losses.all == [later, still]
    assert losses.open() == [still]


def test_losses_of_a_run_that_takes_the_lead_begin_where_the_last_leader_ended(losses, conn):
    left_open = losses.add(Loss("silent", NOW, None, None))
    save(losses, conn)
    over, later, still = (losses.add(Loss("closed", NOW + nth, None, None)) for nth in (1, 2, 15))
    left_open.to_ms, over.to_ms, later.to_ms = NOW + 5, NOW + 10, NOW + 20

    losses.begin_at(NOW + 10)

    assert losses.all == [left_open, later, still]
    assert [loss.from_ms - NOW for loss in losses.all] == [10, 10, 15]
    save(losses, conn, NOW + 30)
    assert {(gap[2] - NOW, gap[3] and gap[3] - NOW) for gap in gaps(conn)} == {(0, 5), (10, 20), (15, None)}


@pytest.mark.parametrize("lasting", [False, True])
def test_what_goes_on_at_a_takeover_gets_a_new_gap_as_the_last_leader_may_have_closed_the_old_one(
    losses, conn, lasting
):
    still = losses.add(Loss("silent", NOW, None, None))
    still.lasting = lasting
    save(losses, conn)
    losses.begin_at(NOW + 10)
    assert losses.unsaved_ms() == NOW + 10, "the last leader has committed what was before"
    save(losses, conn, NOW + 30)

    assert {(gap[2] - NOW, gap[3] and gap[3] - NOW) for gap in gaps(conn)} == {(0, 10), (10, None)}
    assert losses.all == [still]


def test_a_loss_that_is_found_after_a_takeover_does_not_reach_back_into_another_runs_lead(losses):
    losses.begin_at(NOW)
    assert losses.add(Loss("mismatch", NOW - 60_000, None, None)).from_ms == NOW
    losses.extend("database away", NOW - 5, NOW + 5)
    losses.extend("database away", NOW - 5, NOW + 9)
    assert [(loss.from_ms, loss.to_ms) for loss in losses.all] == [(NOW, None), (NOW, NOW + 9)]


def spans(conn):
    return {(gap[4], gap[2] - NOW, gap[3] and gap[3] - NOW) for gap in gaps(conn)}


def test_what_a_leader_lost_before_what_it_announced_is_written_although_it_leads_no_longer(losses, conn):
    silent = losses.add(Loss("silent", NOW, None, None))
    losses.add(Loss("closed", NOW + 1, None, None, to_ms=NOW + 3))
    losses.add(Loss("closed", NOW + 30, None, None, to_ms=NOW + 35))
    losses.leave(NOW + 10)
    losses.leave(NOW + 10)  # twice changes nothing
    mismatch = losses.add(Loss("mismatch", NOW + 4, None, None))
    losses.extend("database away", NOW + 5, NOW + 8)
    losses.extend("database away", NOW + 15, NOW + 20)
    losses.forget(NOW + 40)
    save(losses, conn, NOW + 60, leading=False)

    found = {("closed", 1, 3), ("database away", 5, 8)}
    assert spans(conn) == found
    silent.to_ms = NOW + 45
    save(losses, conn, NOW + 60, leading=False)
    found |= {("silent", 0, 10)}
    assert spans(conn) == found
    save(losses, conn, NOW + 60, leading=False, ending=True)
    found |= {("mismatch", 4, 10)}
    assert spans(conn) == found
    assert losses.unsaved_ms() == NOW + 10

    losses.begin_at(NOW + 50)
    save(losses, conn, NOW + 60)
    assert spans(conn) == found | {("mismatch", 50, None)}
    assert losses.all == [mismatch]


def test_a_loss_of_a_former_lead_in_which_nothing_happened_is_no_gap(losses, conn):
    loss = losses.add(Loss("silent", NOW, None, None))
    losses.leave(NOW + 10)
    loss.to_ms, loss.missed = NOW + 20, False
    save(losses, conn, NOW + 30, leading=False)

    assert gaps(conn) == losses.all == []


def test_a_run_that_leads_again_waits_for_what_it_may_have_lost_in_its_former_lead(losses, conn):
    loss = losses.add(Loss("silent", NOW, None, None))
    losses.leave(NOW + 10)
    losses.begin_at(NOW + 20)
    save(losses, conn, NOW + 30)
    assert spans(conn) == {("silent", 20, None)}

    loss.to_ms, loss.missed = NOW + 40, False
    save(losses, conn, NOW + 40)
    assert {(gap[2] - NOW, gap[6]) for gap in gaps(conn)} == {(20, UNCHANGED)}
    assert losses.all == []


def test_a_minute_after_its_lead_a_run_waits_no_longer_for_what_it_may_have_lost_then(losses, conn, monkeypatch):
    losses.add(Loss("silent", NOW, None, None))
    losses.leave(NOW + 10)
    left_at = module.monotonic()
    monkeypatch.setattr(module, "monotonic", lambda: left_at + LEFT_S + 1)
    losses.add(Loss("mismatch", NOW + 1, None, None))
    save(losses, conn, NOW + 30, leading=False)

    assert spans(conn) == {("silent", 0, 10)}


def test_a_loss_whose_writing_fails_as_the_lead_is_lost_is_written_as_far_as_it_was_announced(losses, conn):
    loss = losses.add(Loss("silent", NOW, None, None))
    losses.begin_saving(NOW + 20)
    losses.leave(NOW + 10)
    losses.end_saving()  # nothing was written
    loss.to_ms = NOW + 20
    save(losses, conn, NOW + 30, leading=False)

    assert spans(conn) == {("silent", 0, 10)}


def test_a_run_that_leads_no_longer_ends_the_gaps_that_it_left_open(losses, conn):
    loss = losses.add(Loss("silent", NOW, None, None))
    save(losses, conn)
    losses.leave(NOW + 10)
    loss.to_ms = NOW + 20
    save(losses, conn, NOW + 30, leading=False)

    assert spans(conn) == {("silent", 0, 20)}
    assert losses.all == []


def test_another_run_that_was_ahead_of_the_time_does_not_cut_losses_for_ever(losses):
    losses.begin_at(NOW + 60_000)
    losses.begin_at(0)  # this run itself led last
    assert losses.add(Loss("silent", NOW, None, None)).from_ms == NOW + 60_000
    losses.begin_at(NOW)
    assert losses.add(Loss("silent", NOW + 1, None, None)).from_ms == NOW + 1


def test_many_losses_are_written_in_one_statement(losses, conn, monkeypatch):
    statements = []

    class Counted:
        def __getattr__(self, name):
            statements.append(name)
            return getattr(queries, name)

    monkeypatch.setattr(module, "queries", Counted())
    for nth in range(300):
        losses.add(Loss.of("mismatch", [token(1 + nth, 0)], NOW + nth, NOW + nth + 5))
    still = losses.add(Loss("silent", NOW, None, None))
    save(losses, conn)

    assert statements == ["open_gaps"]
    assert len(gaps(conn)) == 602
    assert losses.all == [still]
    assert {row[0] for row in conn.execute("select gap_id from coverage_gaps where to_ts is null").fetchall()} == set(
        still.gap_ids
    )


def test_what_goes_on_while_it_is_being_written_is_another_loss(losses, conn):
    losses.extend("database away", NOW, NOW + 5)
    losses.extend("database away", NOW + 5, NOW + 9)
    saving = losses.begin_saving(NOW)
    losses.extend("database away", NOW + 20, NOW + 30)
    losses.write(conn, saving)
    losses.end_saving()
    save(losses, conn)

    assert [gap[2:4] for gap in gaps(conn) if gap[0] == "books"] == [(NOW, NOW + 9), (NOW + 20, NOW + 30)]


def test_what_could_not_be_written_is_written_the_next_time(losses, conn):
    losses.extend("database away", NOW, NOW + 5)
    losses.begin_saving(NOW)
    losses.end_saving()
    losses.extend("database away", NOW + 5, NOW + 9)
    save(losses, conn)

    assert [gap[2:4] for gap in gaps(conn)] == [(NOW, NOW + 9)] * 2
    assert losses.all == []


def test_losses_that_wait_for_the_database_are_joined_and_none_of_them_is_forgotten(losses):
    spans = [(token(1 + nth % 50, 0), NOW + nth * 100, NOW + nth * 100 + 50) for nth in range(20 * MAX_UNSAVED)]
    for of, from_ms, to_ms in spans:
        losses.add(Loss.of("mismatch", [of], from_ms, to_ms, kinds=("books",)))

    assert len(losses.all) <= 2 * MAX_UNSAVED
    held = sorted((loss.from_ms, loss.to_ms, loss.token_ids) for loss in losses.all)
    for of, from_ms, to_ms in spans[::97]:
        assert any(begin <= from_ms and to_ms <= end and of.token_id in tokens for begin, end, tokens in held)
