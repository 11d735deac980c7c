import pytest

from orchestration.ingest.clock import MAX_SAMPLES, ExchangeClock
from tests.orchestration.ingest.making import NOW

DELAY_MS = 80


class Hearing:
    """A clock that is ahead of the exchange's, and what it hears."""

    def __init__(self, ahead_ms=0):
        self.ahead_ms, self.now_ms = ahead_ms, NOW
        self.clock = ExchangeClock(lambda: (self.now_ms + self.ahead_ms) / 1000)

    def go_on(self, seconds, *, delay_ms=DELAY_MS):
        for _ in range(seconds * 10):
            self.now_ms += 100
            self.clock.hear(self.now_ms - delay_ms, self.clock.our_ms())
            self.clock.settle(self.clock.our_ms())


@pytest.mark.parametrize("ahead_ms", [0, 5_000, -5_000, 86_400_000])
def test_two_hosts_agree_on_the_exchanges_time_whatever_their_clocks_say(ahead_ms):
    hearing = Hearing(ahead_ms)
    hearing.go_on(3)

    assert hearing.clock.now_ms() == hearing.now_ms - DELAY_MS
    assert hearing.clock.theirs(hearing.clock.ours(NOW)) == NOW
    assert hearing.clock.ours(hearing.now_ms - DELAY_MS) == hearing.now_ms + ahead_ms


@pytest.mark.parametrize("wrong_ms", [500_000, -500_000])
def test_single_instants_that_are_wrong_do_not_move_it(wrong_ms):
    hearing = Hearing()
    hearing.go_on(5)
    hearing.clock.hear(hearing.now_ms + wrong_ms, hearing.clock.our_ms())
    hearing.go_on(2)

    assert hearing.clock.now_ms() == hearing.now_ms - DELAY_MS


def test_a_burst_after_a_stall_does_not_move_it():
    hearing = Hearing()
    hearing.go_on(10)
    hearing.go_on(3, delay_ms=4_000)

    assert hearing.clock.now_ms() == hearing.now_ms - DELAY_MS


def test_before_anything_is_heard_another_clock_is_taken_and_not_afterwards():
    hearing = Hearing(ahead_ms=5_000)
    hearing.clock.assume(4_990)
    assert hearing.clock.now_ms() == NOW + 10

    hearing.go_on(1)
    hearing.clock.assume(0)
    assert hearing.clock.now_ms() == hearing.now_ms - DELAY_MS


def test_what_it_remembers_of_a_second_is_bounded():
    hearing = Hearing()
    for _ in range(3 * MAX_SAMPLES):
        hearing.clock.hear(NOW, NOW)

    assert len(hearing.clock._samples) == MAX_SAMPLES
