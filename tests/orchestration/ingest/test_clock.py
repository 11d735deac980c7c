import pytest

from orchestration.ingest.clock import LEAST_MS, MAX_LAG_MS, MAX_SAMPLES, ExchangeClock
from tests.orchestration.ingest.builders import NOW

DELAY_MS = 80


class DriftingClock:
    """A clock ahead of the exchange's, and the messages it receives."""

    def __init__(self, ahead_ms=0):
        self.ahead_ms, self.now_ms = ahead_ms, NOW
        self.clock = ExchangeClock(lambda: (self.now_ms + self.ahead_ms) / 1000)

    def run(self, seconds, *, delay_ms=DELAY_MS):
        for _ in range(seconds * 10):
            self.now_ms += 100
            self.clock.observe(self.now_ms - delay_ms, self.clock.local_ms())
            self.clock.update(self.clock.local_ms())


@pytest.mark.parametrize("ahead_ms", [0, 5_000, -5_000, 86_400_000])
def test_two_hosts_agree_on_the_exchanges_time_whatever_their_clocks_say(ahead_ms):
    drifting = DriftingClock(ahead_ms)
    drifting.run(3)

    assert drifting.clock.now_ms() == drifting.now_ms - DELAY_MS
    assert drifting.clock.to_exchange_ms(drifting.clock.to_local_ms(NOW)) == NOW
    assert drifting.clock.to_local_ms(drifting.now_ms - DELAY_MS) == drifting.now_ms + ahead_ms


@pytest.mark.parametrize("wrong_ms", [500_000, -500_000])
def test_single_instants_that_are_wrong_do_not_move_it(wrong_ms):
    drifting = DriftingClock()
    drifting.run(5)
    drifting.clock.observe(drifting.now_ms + wrong_ms, drifting.clock.local_ms())
    drifting.run(2)

    assert drifting.clock.now_ms() == drifting.now_ms - DELAY_MS


def test_a_burst_after_a_stall_does_not_move_it():
    drifting = DriftingClock()
    drifting.run(10)
    drifting.run(3, delay_ms=4_000)

    assert drifting.clock.now_ms() == drifting.now_ms - DELAY_MS


def test_before_anything_is_heard_another_clock_is_taken_and_not_afterwards():
    drifting = DriftingClock(ahead_ms=5_000)
    drifting.clock.assume(4_990)
    assert drifting.clock.now_ms() == NOW + 10

    drifting.run(1)
    drifting.clock.assume(0)
    assert drifting.clock.now_ms() == drifting.now_ms - DELAY_MS


def test_what_it_remembers_of_a_second_is_bounded():
    drifting = DriftingClock()
    for _ in range(3 * MAX_SAMPLES):
        drifting.clock.observe(NOW, NOW)

    assert len(drifting.clock._samples) == MAX_SAMPLES


def test_a_lag_of_all_messages_is_told_from_a_clock_that_differs():
    drifting = DriftingClock(5_000)
    drifting.run(60)
    assert drifting.clock.lag_ms == 0

    drifting.run(60, delay_ms=DELAY_MS + 40_000)
    assert drifting.clock.lag_ms == 40_000

    drifting.run(60)
    assert drifting.clock.lag_ms == 0


def test_timestamps_that_jump_are_no_lag_for_ever():
    drifting = DriftingClock()
    drifting.run(60)
    drifting.run(60, delay_ms=86_400_000)  # a tape begins anew
    assert drifting.clock.lag_ms == MAX_LAG_MS

    drifting.now_ms += LEAST_MS
    drifting.run(1, delay_ms=86_400_000)
    drifting.now_ms += LEAST_MS
    drifting.run(1, delay_ms=86_400_000)
    assert drifting.clock.lag_ms == 0


def test_a_tape_without_a_pace_does_not_lag():
    drifting = DriftingClock()
    for seconds in range(60):
        drifting.run(1, delay_ms=86_400_000 - seconds * 1_000_000)
    assert drifting.clock.lag_ms == 0
