"""Signals follow their definitions, live and recomputed, whatever the data looks like."""

from __future__ import annotations

from datetime import timedelta

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from config import tunables
from orchestration.signals import again, passes
from orchestration.signals.measures import Parameters
from tests import stream_rows
from tests.orchestration.signals.histories import END, wild
from tests.orchestration.signals.oracle import Oracle

MINUTES = 30
FIRST = END - timedelta(minutes=MINUTES - 1)
EXAMPLES = max(6, hypothesis.settings.default.max_examples // 8)
# Easier to trigger than an administrator would want.
EASY = {
    "signal_min_trades": 4,
    "signal_min_volume_usd": 5.0,
    "signal_min_history_h": 3.0,
    "momentum_min_move": 0.02,
    "momentum_factor": 1.0,
    "volume_spike_ratio": 1.5,
    "spread_widening_min_spread": 0.01,
    "spread_widening_factor": 1.2,
    "book_imbalance_lean": 0.4,
    "price_reversal_min_move": 0.01,
    "price_reversal_factor": 0.5,
    "price_reversal_share": 0.3,
}
COOLDOWNS = ("momentum", "volume_spike", "spread_widening", "book_imbalance", "price_reversal")


def set_all(conn, values):
    for name, value in values.items():
        tunables.set_(conn, name, str(value))
    return Parameters.of(tunables.values(conn))


def stored(conn):
    return conn.execute(
        "select ts, market_key, type, value, threshold, direction from signals order by ts, market_key, type"
    ).fetchall()


def all_columns(conn):
    return conn.execute("select * from signals order by ts, signal_id").fetchall()


def told(conn):
    return len(stream_rows.rows(conn, "signal"))


def live(conn, first=FIRST, until=END, every=7):
    """Analyse continuously: a few minutes a pass."""
    now = first + passes.SETTLE
    passes.analyse(conn, now)
    while now < until + passes.SETTLE:
        now = min(now + timedelta(minutes=every), until + passes.SETTLE)
        passes.analyse(conn, now)


@pytest.mark.timeout(3600)
@hypothesis.settings(
    max_examples=EXAMPLES, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture], print_blob=True
)
@given(seed=st.integers(0, 2**32), cooldown=st.sampled_from([1, 5, 60]), easy=st.booleans())
def test_signals_property_equal_those_of_pandas_and_those_computed_again(conn, seed, cooldown, easy):
    history = wild(seed, MINUTES)
    with conn.transaction(force_rollback=True):
        by = set_all(conn, (EASY if easy else {}) | {f"{name}_cooldown_min": cooldown for name in COOLDOWNS})
        history.store(conn)

        live(conn)

        expected = Oracle(history).run(FIRST, END, by)
        assert stored(conn) == sorted(expected, key=lambda row: row[:3])
        before = all_columns(conn)
        assert told(conn) == len(before)
        done = again.recompute(conn, FIRST, span=END - FIRST)
        assert (done.added, done.taken_out, done.other_editions) == (0, 0, 0)
        assert all_columns(conn) == before
        conn.execute("delete from signals where ts < %s and signal_id %% 2 = 0", [END])
        again.recompute(conn, FIRST, span=END - FIRST)
        assert [row[:-1] for row in all_columns(conn)] == [row[:-1] for row in before]


def test_the_histories_hold_every_type_of_signal_and_every_reason_for_silence(conn):
    """Otherwise the property would hold trivially."""
    by = Parameters.of({**{name: each.default for name, each in tunables.TUNABLES.items()}, **EASY})
    types, silenced = set(), 0
    for seed in range(20):
        history = wild(seed, MINUTES)
        history.markets = list(range(9))[: 1 + max([row[0] for row in history.trades], default=0)]
        found = Oracle(history).run(END - timedelta(minutes=4), END, by)
        types |= {row[2] for row in found}
        silenced += bool(history.gaps) + bool(history.changes)

    assert types == set(COOLDOWNS)
    assert silenced > 3
