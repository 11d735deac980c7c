import numpy as np
import pytest

from orchestration.ingest import lag
from orchestration.ingest.lag import Lag


def test_a_quantile_is_at_most_five_percent_off():
    random = np.random.default_rng(7)
    values = random.lognormal(5, 1, 20_000)
    histogram = Lag()
    histogram.add(0, [-value for value in values])

    for q in (0.5, 0.9, 0.99):
        assert histogram.quantile(q) == pytest.approx(np.quantile(values, q), rel=0.051, abs=1)


def test_a_millisecond_and_ten_minutes_are_within_the_edges():
    assert lag.EDGES_MS[0] == 1
    assert lag.EDGES_MS[-1] > 600_000
    assert (lag.EDGES_MS[1:] / lag.EDGES_MS[:-1]).max() <= 1.0500001


def test_stored_counts_of_several_runs_add_up():
    first, second = Lag(), Lag()
    first.add(1000, [990, 991])
    second.add(1000, [100])

    assert lag.quantile(lag.merged([first.trimmed(), second.trimmed()]), 1) == pytest.approx(900, rel=0.05)
    first.merge(second)
    assert len(first) == 3
    assert first.max_ms == 900


def test_clocks_that_disagree_count_as_no_lag():
    histogram = Lag()
    histogram.add(1000, [1500])

    assert histogram.trimmed() == [1]


def test_nothing_counted_has_no_quantile():
    assert Lag().quantile(0.5) is None
    assert Lag().trimmed() == []
