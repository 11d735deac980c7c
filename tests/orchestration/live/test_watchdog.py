from orchestration.live.watchdog import Pulse

LIMIT = 10.0
NOBODY = float("inf")


def beating(per_s, seconds=120):
    pulse = Pulse(0.0)
    for second in range(1, seconds + 1):
        if per_s >= 1 or second % round(1 / per_s) == 0:
            pulse.beat(float(second), max(1, round(per_s)))
        pulse.settle(float(second))
    return pulse, float(seconds)


def test_a_busy_socket_is_found_dead_at_the_limit():
    pulse, now = beating(50)

    assert not pulse.dead(now + 9.9, LIMIT, 0.0)
    assert pulse.dead(now + 10.0, LIMIT, 0.0)


def test_a_quiet_socket_among_lively_ones_is_given_a_minute():
    pulse, _ = beating(0.1)
    silent_since = pulse.heard_at

    assert not pulse.dead(silent_since + 40, LIMIT, 0.1)
    assert pulse.dead(silent_since + 61, LIMIT, 0.1)


def test_silence_of_the_whole_feed_is_found_within_fifteen_seconds():
    pulse, _ = beating(0.1)
    silent_since = pulse.heard_at

    assert pulse.dead(silent_since + 12.1, LIMIT, NOBODY)
    assert beating(0.1)[0].dead(silent_since + 15.0, 14.0, NOBODY)


def test_patience_grows_while_nothing_was_missed_and_ends_with_the_next_message():
    pulse, now = beating(0.02)
    pulse.begin(now)
    pulse.was_quiet()
    assert not pulse.dead(now + 20, LIMIT, NOBODY)
    assert pulse.dead(now + 25, LIMIT, NOBODY)

    pulse.beat(now + 25, 1)
    assert pulse.dead(now + 25 + 12.1, LIMIT, NOBODY)


def test_the_usual_rate_is_remembered_over_a_reconnect():
    pulse, now = beating(50)
    pulse.begin(now)

    assert pulse.dead(now + 10, LIMIT, 0.0)
