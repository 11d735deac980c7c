"""Signals on recorded data of the exchange, compared with the same computation in pandas."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd

from orchestration.signals import again
from tests.orchestration.signals.histories import History
from tests.orchestration.signals.oracle import Oracle
from tests.orchestration.signals.test_signals import all_columns, live, set_all, stored

MINUTE = timedelta(minutes=1)
# No recording is as long as the history that signals usually require.
SHORT = {"signal_min_history_h": 0.5}

NOBEL = [
    "09:48 volume_spike donald-trump 20.025 of 5.000 down",
    "09:48 momentum mara-corina-machado 0.332 of 0.050 up",
    "09:48 volume_spike mara-corina-machado 15.469 of 5.000 up",
    "09:48 momentum yulia-navalnaya 0.169 of 0.050 down",
    "09:48 volume_spike yulia-navalnaya 9.981 of 5.000 down",
    "09:48 momentum sudans-emergency-response-rooms 0.100 of 0.050 down",
    "09:48 volume_spike sudans-emergency-response-rooms 13.982 of 5.000 down",
    "09:48 volume_spike greta-thunberg 14.878 of 5.000 -",
    "09:48 volume_spike volodymyr-zelensky 23.702 of 5.000 down",
    "09:48 volume_spike international-court-of-justice 21.214 of 5.000 up",
    "09:48 volume_spike doctors-without-borders-mdecins-sans-frontires 15.699 of 5.000 down",
    "09:50 price_reversal yulia-navalnaya 1.946 of 0.600 down",
]
BALL_GAME = [
    "01:23 volume_spike mlb-bos-laa-2025-06-24 9.999 of 5.000 down",
    "01:39 momentum mlb-bos-laa-2025-06-24 0.175 of 0.050 up",
    "01:40 spread_widening mlb-bos-laa-2025-06-24 0.095 of 0.035 -",
    "01:44 price_reversal mlb-bos-laa-2025-06-24 0.914 of 0.600 down",
    "01:49 momentum mlb-bos-laa-2025-06-24 0.060 of 0.050 down",
]


def nobel(folder):
    """Trades of the twenty markets on who wins the Nobel Peace Prize, on the morning of the announcement."""
    rows = pd.read_csv(folder / "trades/data_api_trades_nobel_2025-10.csv.gz").drop_duplicates()
    rows = rows.sort_values("timestamp", kind="stable")
    names = list(dict.fromkeys(rows.slug))
    history = History()
    for row in rows.itertuples():
        history.trade(names.index(row.slug), int(row.timestamp) * 1000, row.price, row.size, int(row.outcomeIndex))
    return history, names


def ball_game(folder):
    """Books of a baseball game, play by play. The recording has no trades: one a minute is added, at the mid price."""
    rows = pd.read_csv(folder / "ws_market/20250624_mlb-bos-laa-2025-06-24_polymarket-market-events.csv.gz")
    token = rows.asset_id.iloc[0]
    books = rows[(rows.event_type == "book") & (rows.asset_id == token)]
    history, middles = History(), {}
    for ts, levels in books.groupby("timestamp", sort=True):
        bids = levels[levels.side == "bid"].sort_values("price", ascending=False)
        asks = levels[levels.side == "ask"].sort_values("price")
        bid = None if bids.empty else bids.price.iloc[0]
        ask = None if asks.empty else asks.price.iloc[0]
        history.quote(0, int(ts), bid, ask)
        history.book(0, int(ts), list(bids["size"]), list(asks["size"]))
        if bid is not None and ask is not None:
            middles[int(ts) // 60_000] = (int(ts), (bid + ask) / 2)
    for ts, middle in middles.values():
        history.trade(0, ts, middle, 100)
    return history, ["mlb-bos-laa-2025-06-24"]


def updown(folder):
    """Trades of markets of five and fifteen minutes, in two stretches of less than a minute each."""
    rows = pd.read_csv(folder / "trades/live_trades_updown_2026-03-10.csv.gz").sort_values(
        "timestamp_ms", kind="stable"
    )
    names = list(dict.fromkeys(rows.market_slug))
    history = History()
    for row in rows.itertuples():
        number = names.index(row.market_slug)
        history.trade(number, int(row.timestamp_ms), row.price, row.size, int(row.outcome == "Down"))
        minutes = int(row.timeframe.removesuffix("m"))
        history.ends[number] = (int(row.market_slug.rpartition("-")[2]) + 60 * minutes) * 1000
    return history, names


def fired(conn, history, names, first, until, **parameters):
    by = set_all(conn, SHORT | parameters)
    history.store(conn)
    until = until + MINUTE  # the span of a recomputed day excludes its end

    live(conn, first=first, until=until, every=30)

    rows = stored(conn)
    assert rows == sorted(Oracle(history).run(first, until, by), key=lambda row: row[:3])
    before = all_columns(conn)
    done = again.recompute(conn, first, span=until - first)
    assert (done.added, done.taken_out, all_columns(conn)) == (0, 0, before)
    words = {1: "up", -1: "down", None: "-"}
    return [
        f"{ts:%H:%M} {type_} {names[history.markets.index(key)]} {value:.3f} of {threshold:.3f} {words[direction]}"
        for ts, key, type_, value, threshold, direction in rows
    ]


def test_the_nobel_prize_is_noticed(conn, recorded):
    history, names = nobel(recorded)
    names = [name.removeprefix("will-").removesuffix("-win-the-nobel-peace-prize-in-2025") for name in names]
    assert len(history.trades) == 1500

    found = fired(
        conn, history, names, datetime(2025, 10, 10, 9, 48, tzinfo=UTC), datetime(2025, 10, 10, 10, 3, tzinfo=UTC)
    )

    assert found == NOBEL


def test_a_ball_game_is_noticed(conn, recorded):
    history, names = ball_game(recorded)

    found = fired(
        conn,
        history,
        names,
        datetime(2025, 6, 25, 1, 20, tzinfo=UTC),
        datetime(2025, 6, 25, 1, 50, tzinfo=UTC),
        signal_min_volume_usd="1",
    )

    assert found == BALL_GAME


def test_markets_of_minutes_that_go_where_chance_takes_them_are_not_noticed(conn, recorded):
    """By 5 cents alone, all but two of nine would be."""
    history, names = updown(recorded)
    first = datetime(2026, 3, 10, 19, 26, tzinfo=UTC)

    assert fired(conn, history, names, first, first + 22 * MINUTE) == []
