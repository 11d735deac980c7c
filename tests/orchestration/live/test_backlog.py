from orchestration.live.backlog import Backlog
from orchestration.live.rows import Batch
from tests.orchestration.live.making import NOW, token, trades


def batch(count=1, received_ms=0, ts_ms=NOW, of=None):
    return Batch(trades=trades(count, of or token(), ts_ms=ts_ms), received_ms=received_ms)


def test_the_oldest_come_first_and_what_is_committed_is_forgotten():
    backlog = Backlog(100)
    first, second, third = batch(2), batch(3), batch(4)
    for each in (first, second, third):
        backlog.add(each)

    merged, end = backlog.head(5)
    assert merged.trades == first.trades + second.trades
    backlog.done(end)
    assert backlog.head(5)[0] is third
    assert backlog.events == 4


def test_a_batch_larger_than_asked_for_still_comes():
    backlog = Backlog(100)
    backlog.add(batch(50))

    assert len(backlog.head(10)[0]) == 50


def test_beyond_its_capacity_the_oldest_go_and_their_span_is_known():
    backlog = Backlog(10)
    for nth in range(5):
        backlog.add(batch(4, ts_ms=NOW + nth * 100))

    overflow = backlog.take_overflow()
    assert (overflow.from_ms, overflow.to_ms, overflow.events) == (NOW, NOW + 203, 12)
    assert backlog.events == 8
    assert backlog.take_overflow() is None


def test_what_went_over_while_being_written_is_not_forgotten_twice():
    backlog = Backlog(10)
    backlog.add(batch(6))
    _, end = backlog.head(6)
    kept = batch(6)
    backlog.add(kept)

    backlog.done(end)

    assert backlog.head(6)[0] is kept


def test_a_ring_is_shortened_by_what_somebody_has_committed():
    backlog = Backlog(100)
    for nth in range(5):
        backlog.add(batch(received_ms=nth * 100))

    backlog.prune(250)

    assert len(backlog) == 2
    assert backlog.since_ms == 200


def test_a_window_holds_some_tokens_within_a_span():
    backlog, mine, other = Backlog(100), token(1), token(2)
    backlog.add(batch(3, ts_ms=NOW, of=mine))
    backlog.add(batch(3, ts_ms=NOW, of=other))

    picked = backlog.window({mine.token_id}, NOW + 1, NOW + 5)

    assert [(row.token, row.ts_ms) for row in picked.trades] == [(mine, NOW + 1), (mine, NOW + 2)]
    assert len(backlog.window(None, NOW, NOW + 5)) == 6
