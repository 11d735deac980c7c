"""Events planted in quiet markets are found, with the planted figures, and nothing else is."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from config.tunables import TUNABLES
from orchestration.signals import definitions, measures, passes
from orchestration.signals.measures import Parameters
from tests.orchestration.signals.histories import END, MINUTE_MS, History, millis, quiet
from tests.orchestration.signals.test_signals import live

MINUTE = timedelta(minutes=1)
PLANTED = END - 20 * MINUTE
DEFAULTS = Parameters.of({name: each.default for name, each in TUNABLES.items()})


@pytest.fixture
def history():
    """Two quiet markets up to 20 minutes before the end: number 0 is for the event, number 1 stays quiet throughout."""
    made, dice = History(), random.Random(5)
    quiet(made, 0, dice, until=PLANTED)
    quiet(made, 1, dice)
    return made


def go_on(history, *, price=0.5, spread=0.01, usd=20.0, trades=1, bids=500, asks=500, minutes=range(20)):
    """Continue market 0 for the last 20 minutes: the same each minute."""
    for minute in minutes:
        ts = millis(PLANTED) + minute * MINUTE_MS
        history.quote(0, ts + 10, price - spread / 2, price + spread / 2)
        for n in range(trades):
            history.trade(0, ts + 20_000 + n, price, usd / price / trades)
            history.book(0, ts + 20_100 + n, [bids / 5] * 8, [asks / 5] * 8)


def found(conn, history):
    history.store(conn)
    live(conn, first=END - 25 * MINUTE, every=9)
    rows = conn.execute(
        "select market_key, type, ts, value, threshold, direction, detail from signals order by ts, type"
    )
    numbers = {key: number for number, key in enumerate(history.markets)}
    return [(numbers[key], *rest) for key, *rest in rows.fetchall()]


def level(history):
    """Return the price of market 0 before the event."""
    return history.quotes[max(n for n, row in enumerate(history.quotes) if row[0] == 0)][3] / 1e6 + 0.005


def test_a_jump_is_momentum(conn, history):
    before = level(history)
    go_on(history, price=before + 0.12)

    ((market, type_, ts, value, threshold, direction, detail),) = found(conn, history)

    assert (market, type_, ts, direction) == (0, "momentum", PLANTED + MINUTE, 1)
    assert value == pytest.approx(0.12, abs=0.02)  # from the earliest sample of the window, a small drift away
    assert value == pytest.approx(detail["price_now"] - detail["price_baseline"])
    assert threshold == max(0.05, round(5 * detail["usual_hourly_move"], 6))


def test_a_fall_that_is_made_good_is_momentum_and_a_reversal(conn, history):
    before = level(history)
    go_on(history, price=before - 0.2, minutes=range(8))
    go_on(history, price=before - 0.02, minutes=range(8, 20))

    first, second = found(conn, history)

    assert (first[1], first[2], first[5]) == ("momentum", PLANTED + MINUTE, -1)
    assert (second[1], second[2], second[5]) == ("price_reversal", PLANTED + 9 * MINUTE, 1)
    detail = second[6]
    assert detail["price_turn"] == pytest.approx(before - 0.2, abs=0.001)
    assert detail["back"] == pytest.approx(0.18, abs=0.001)
    assert second[3] == pytest.approx(detail["back"] / -detail["run"], abs=1e-5)
    assert second[4] == 0.6


def test_a_rush_of_trades_is_a_volume_spike(conn, history):
    go_on(history, price=level(history), usd=2000, trades=10)
    spent = [row[6] for row in history.trades if row[0] == 0]

    ((market, type_, ts, value, threshold, _, detail),) = found(conn, history)

    assert (market, type_, threshold) == (0, "volume_spike", 5.0)
    hour, day = (
        sum(row[6] for row in history.trades if row[0] == 0 and ts - span <= when(row) < ts)
        for span in (timedelta(hours=1), timedelta(hours=24))
    )
    assert value == pytest.approx(hour * 24 / day, abs=1e-6)
    assert (detail["vol_1h_usd"], detail["vol_24h_usd"]) == (hour / 1e6, day / 1e6)
    assert 0 < sum(spent[:10]) < hour


def test_a_spread_that_widens_is_found_when_five_minutes_of_it_are_on_average_wide(conn, history):
    go_on(history, price=level(history), spread=0.06)

    ((market, type_, ts, value, threshold, direction, detail),) = found(conn, history)

    assert (market, type_, direction) == (0, "spread_widening", None)
    assert 0.03 <= value <= 0.06
    assert threshold == pytest.approx(max(0.03, 3 * detail["spread_baseline"]), abs=1e-6)
    assert 0.01 <= detail["spread_baseline"] <= 0.013
    assert PLANTED + 2 * MINUTE <= ts <= PLANTED + 5 * MINUTE


def test_a_book_that_begins_to_lean_is_an_imbalance(conn, history):
    go_on(history, price=level(history), bids=100, asks=1500)

    ((market, type_, ts, value, threshold, direction, detail),) = found(conn, history)

    assert (market, type_, direction, threshold) == (0, "book_imbalance", -1, 0.7)
    assert value == -detail["imbalance"] >= 0.7
    assert abs(detail["imbalance_baseline"]) < 0.35
    assert PLANTED + 3 * MINUTE <= ts <= PLANTED + 5 * MINUTE


def test_where_nothing_happens_nothing_is_found(conn, history):
    go_on(history, price=level(history))

    assert found(conn, history) == []


@pytest.mark.parametrize("ended", ["CLOSED", "RESOLVED"])
def test_of_a_market_that_has_ended_nothing_is_found(conn, history, ended):
    history.changes.append((0, millis(PLANTED), "ACTIVE", ended))
    history.statuses[0] = ended
    go_on(history, price=level(history) + 0.3, spread=0.08, usd=5000, bids=1, asks=5000)

    assert found(conn, history) == []


@pytest.mark.parametrize("kind", ["trades", "books"])
def test_where_too_much_was_missed_nothing_is_said_of_it(conn, history, kind):
    history.gaps.append((kind, None, millis(PLANTED) - 6 * MINUTE_MS, millis(PLANTED), None))
    go_on(history, price=level(history) + 0.2, spread=0.08, usd=5000, bids=1, asks=5000)

    types = {row[1] for row in found(conn, history)}

    assert types == ({"spread_widening", "book_imbalance"} if kind == "trades" else {"volume_spike"})


def test_a_one_sided_book_has_neither_spread_nor_lean(conn, history):
    for minute in range(20):
        ts = millis(PLANTED) + minute * MINUTE_MS
        history.quote(0, ts, None, 0.9)
        history.trade(0, ts, 0.5, 40)
        history.book(0, ts + 1, [], [100] * 5)

    assert [row for row in found(conn, history) if row[1] in {"spread_widening", "book_imbalance"}] == []


def test_a_market_without_trades_is_not_even_looked_at(conn, add_market):
    add_market()

    assert measures.read(conn, END, DEFAULTS) == []


def test_one_trade_is_enough_where_one_is_asked_for_and_says_nothing_yet(conn):
    history = History()
    history.trade(0, millis(END) - 1000, 0.5, 1000)
    history.store(conn)
    given = Parameters.of({**vars(DEFAULTS), "signal_min_trades": 1, "signal_min_history_h": 0.0})

    (measured,) = measures.read(conn, END, given)

    assert (measured.trades_1h, measured.price_now, measured.minutes) == (1, 500_000, 1)
    assert [each.type for each in definitions.findings([measured], given)] == ["volume_spike"]
    assert list(definitions.findings([measured], DEFAULTS)) == []


@pytest.mark.parametrize(
    ("bid", "ask", "price"),
    [(0.45, 0.55, 500_000), (0.449, 0.55, 300_000), (None, 0.55, 300_000), (0.45, None, 300_000)],
)
def test_the_price_is_the_middle_or_while_it_means_little_the_last_trade(conn, bid, ask, price):
    history = History()
    history.quote(0, millis(END) - 2000, bid, ask)
    history.trade(0, millis(END) - 1000, 0.3, 1000)
    history.store(conn)
    given = Parameters.of({**vars(DEFAULTS), "signal_min_trades": 1})

    (measured,) = measures.read(conn, END, given)

    assert (measured.price_now, measured.price_baseline) == (price, price)


def test_every_parameter_of_analysis_is_declared_and_used():
    assert set(Parameters.__dataclass_fields__) <= set(TUNABLES)
    assert all(passes.cooldown(type_, DEFAULTS) == timedelta(hours=1) for type_ in definitions.DEFINITIONS)


def test_the_documentation_names_every_parameter_with_its_default_and_bounds():
    page = (Path(__file__).parents[3] / "docs/signals.md").read_text()
    table = re.findall("^\\| `(\\w+)` \\| ([\\d.,]+) \\| ([\\d.,]+) \N{EN DASH} ([\\d.,⁹]+) \\|", page, re.MULTILINE)

    told = {name: [float(each.replace(",", "").replace("10⁹", "1e9")) for each in rest] for name, *rest in table}
    declared = {
        name: [each.default, each.least, each.most]
        for name, each in TUNABLES.items()
        if name in Parameters.__dataclass_fields__ and not name.endswith("cooldown_min")
    }
    assert told == declared
    assert all(f"`{type_}`" in page for type_ in [*definitions.DEFINITIONS, "whale_alert"])


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_how_often_a_quiet_day_gives_a_false_alarm(conn):
    """A hundred markets with random walks, steady trading and even quotes, for a whole day."""
    markets, dice, history = 100, random.Random(11), History()
    for market in range(markets):
        quiet(
            history,
            market,
            dice,
            hours=48,
            price=dice.uniform(0.1, 0.9),
            step=dice.choice((0.0005, 0.001, 0.002, 0.004)),
            spread=dice.choice((0.002, 0.01, 0.02)),
            a_minute=dice.choice((0.2, 0.5, 1.0)),
            usd=dice.choice((20, 100)),
        )
    history.store(conn)
    conn.execute("analyze")

    live(conn, first=END - timedelta(hours=24), every=60)

    alarms = Counter(dict(conn.execute("select type, count(*) from signals group by type").fetchall()))
    print(f"\nfalse alarms of {markets} quiet markets in a day: {dict(alarms)}")
    assert sum(alarms.values()) <= 0.1 * markets


def when(row):
    from tests.orchestration.signals.histories import instant

    return instant(row[2])


def five_minutes(run, *, size=100):
    """A market of five minutes that begins four and a half minutes before the hour, and the prices of its seconds."""
    history, start = History(), millis(END) - 4 * MINUTE_MS - 30_000
    history.ends[0] = start + 5 * MINUTE_MS
    for second in range(0, 240, 5):
        price = run(second)
        history.quote(0, start + second * 1000, price - 0.005, price + 0.005)
        history.trade(0, start + second * 1000 + 1, price, size)
    return history


def test_a_market_of_five_minutes_that_runs_away_early_is_momentum(conn):
    history = five_minutes(lambda second: min(0.95, 0.5 + second * 0.005))

    first, *_ = found(conn, history)

    market, type_, ts, value, threshold, direction, detail = first
    assert (market, type_, ts, direction) == (0, "momentum", END - 3 * MINUTE, 1)
    assert value == pytest.approx(0.425, abs=0.03)
    # 90 of 300 seconds: chance alone moves it by 0.5 times the root of their share.
    assert detail["move_by_chance"] == pytest.approx(0.5 * (90 / 300) ** 0.5, abs=0.01)
    assert threshold == pytest.approx(1.5 * detail["move_by_chance"], abs=1e-6)


def test_a_market_of_five_minutes_that_goes_as_far_as_chance_takes_it_is_not(conn):
    assert found(conn, five_minutes(lambda second: 0.5 + 0.5 * (second / 300) ** 0.5)) == []


def test_a_market_of_five_minutes_that_comes_back_is_a_reversal(conn):
    history = five_minutes(lambda second: 0.5 - min(second, 90) * 0.005 + max(0, second - 90) * 0.004)

    types = [(row[1], row[5]) for row in found(conn, history) if row[1] == "price_reversal"]

    assert types in ([], [("price_reversal", 1)])


def test_a_market_without_a_known_end_still_needs_a_past(conn):
    history = five_minutes(lambda second: min(0.95, 0.5 + second * 0.005))
    history.ends.clear()

    assert found(conn, history) == []
