import pytest

from upstream.transport.limits import Bucket, RateLimits


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def walk(limits, clock, url, requests):
    """Send one after the other, each as soon as it may go; the instants."""
    sent = []
    for _ in range(requests):
        clock.now += limits.take(url)
        sent.append(clock.now)
    return sent


def test_no_window_of_ten_seconds_sees_more_than_the_documented_limit():
    clock = Clock()
    limits = RateLimits(clock=clock)
    limits.declare("https://a.test", {"/markets": 300})

    sent = walk(limits, clock, "https://a.test/markets/keyset?limit=1", 1000)

    assert max(sum(at <= other < at + 10 for other in sent) for at in sent) <= 300
    assert sent[-1] - sent[0] < 1000 / 24 + 1  # and four fifths of it are used


def test_a_path_counts_for_its_upstream_too():
    clock = Clock()
    limits = RateLimits(clock=clock)
    limits.declare("https://a.test/clob", {"": 10, "/book": 1000})

    assert walk(limits, clock, "https://a.test/clob/book", 4) == pytest.approx([100.0, 100.0, 101.25, 102.5])
    assert limits.take("https://a.test/clob/other") == pytest.approx(1.25)


def test_other_hosts_and_paths_that_only_begin_alike_are_free():
    clock = Clock()
    limits = RateLimits(clock=clock)
    limits.declare("https://a.test", {"/book": 1})

    assert [limits.take("https://a.test/books") for _ in range(5)] == [0.0] * 5
    assert [limits.take("https://b.test/book") for _ in range(5)] == [0.0] * 5
    assert [limits.take("https://a.test/book?token_id=1") for _ in range(3)] == [0.0, 12.5, 25.0]


def test_limits_said_twice_are_the_same_limits():
    clock = Clock()
    limits = RateLimits(clock=clock)
    for _ in range(3):
        limits.declare("https://a.test/", {"": 10})

    assert walk(limits, clock, "https://a.test/x", 3) == pytest.approx([100.0, 100.0, 101.25])


def test_what_an_upstream_says_about_itself_replaces_what_was_declared():
    clock = Clock()
    limits = RateLimits(clock=clock)
    limits.declare("https://a.test", {"": 10})
    limits.replace("https://a.test/", Bucket(size=40, rate=20))

    assert limits.take("https://a.test/x") == pytest.approx(0.05)  # it begins empty: who knows what was used
    clock.now += 100
    assert [limits.take("https://a.test/x", 40), limits.take("https://a.test/x", 10)] == pytest.approx([0.0, 0.5])
