"""Backfill from an exchange with a past: complete, once, and in the background."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest

from config import tunables
from config.settings import Settings
from orchestration.assets import backfill as defs
from orchestration.coverage import backfill
from orchestration.feeds.keeper import Run
from orchestration.ingest.exchanges.polymarket import PolymarketClient
from orchestration.markets import catalogue
from orchestration.markets.discovery import Discovery
from orchestration.settlement.ranges import Ranges
from orchestration.settlement.writer import FEED, Writer
from orchestration.signals.definitions import EDITION
from orchestration.signals.measures import Parameters
from orchestration.wallets import leaderboards, positions
from sql import database
from sql.queries import feed, settlement, signals
from upstream.chain.contracts import POLYGON
from upstream.chain.rpc import Rpc
from upstream.polymarket.gamma.client import Gamma
from upstream.polymarket.gamma.listings import GammaListings
from upstream.sandbox.server import Sandbox
from upstream.transport.http import Client

NOW = datetime(2026, 11, 18, 3, 10, tzinfo=UTC)
DAYS = 1
ONE = 1_000_000


@pytest.fixture(scope="module")
def sandbox():
    """A paused sandbox with two days of history."""
    start_ms = int(NOW.timestamp() * 1000)
    with Sandbox(simulate=5, markets=12, start_ms=start_ms, past_days=DAYS, hold=True) as running:
        yield running


class Installation:
    """A new installation: it knows the open markets, and nothing from before."""

    def __init__(self, conn, url, sandbox):
        self.conn, self.url, self.sandbox = conn, url, sandbox
        self.looked = []
        self.reported = []
        self.exchange = PolymarketClient(
            sandbox.gamma_url, sandbox.clob_url, sandbox.socket_url, sandbox.data_api_url, "simulated"
        )
        self.rpc = Rpc([sandbox.rpc_url])
        with Client() as client:
            markets = list(Gamma(client, sandbox.gamma_url).markets(closed=False))
        catalogue.store(conn, [market.row("simulated") for market in markets], cause="discovered")
        conn.execute(
            "insert into settings (name, value) values ('recorded_since', to_jsonb(%s::bigint))",
            [int(NOW.timestamp() * 1000)],
        )
        given = json.dumps(asdict(Parameters.of(tunables.values(conn))))
        signals.note_parameters(conn, since=NOW, definitions=EDITION, parameters=given)
        feed.beat(conn, stage="analysis", last_data_at=NOW, detail=f'{{"until": "{NOW.isoformat()}"}}')
        head = sandbox.chain.head
        settlement.set_heads(
            conn, feed=FEED, head=head, finalized=head - 16, indexed=head, detail=f'{{"start": {head - 16}}}'
        )

    def backfill(self, **options):
        state = backfill.begun(self.conn, DAYS)
        ranges = Ranges(Writer(self.conn, POLYGON, publish_within_s=0), self.rpc, POLYGON)
        kept = timedelta(days=3650)
        return backfill.Backfill(
            self.conn, self.exchange, state, kept, rpc=self.rpc, ranges=ranges, share=1.0, report=self.note, **options
        )

    def note(self, line):
        asked = {name for (name,) in self.conn.execute("select name from settings where name like 'asked.%%'")}
        self.reported.append((line, asked))

    @contextlib.contextmanager
    def discovery(self):
        self.looked.append("catalogue")
        with database.connect(self.url, autocommit=True) as conn, Client() as client:
            yield Discovery(conn, GammaListings(Gamma(client, self.sandbox.gamma_url)), Settings(_env_file=None))

    def one(self, query, *given):
        return self.conn.execute(query, given).fetchone()


@pytest.fixture(scope="module")
def filled(new_database, sandbox):
    """An installation whose past has been backfilled, with one interruption."""
    with new_database() as url, database.connect(url, autocommit=True) as conn:
        installation = Installation(conn, url, sandbox)
        stops = iter([False] * 12 + [True])
        installation.first = installation.backfill(should_stop=lambda: next(stops, True)).run(installation.discovery)
        installation.then = installation.backfill().run(installation.discovery)
        positions.bring_up_to_date(conn, NOW, seconds=120)
        leaderboards.write(conn, NOW)
        yield installation
        installation.rpc.close()
        installation.exchange.close()


def test_what_was_interrupted_goes_on_where_it_was(filled):
    state = backfill.BackfillState.read(filled.conn)

    assert (filled.first, filled.then) == (False, True)
    assert filled.looked == ["catalogue"]
    assert state.done == {"trades": DAYS + 1, "settlements": DAYS + 2, "signals": DAYS + 1}
    assert state.finished_at is not None
    assert state.doing is None


def test_every_trade_of_the_past_is_held_once(filled):
    past = filled.sandbox.past.trades

    held = filled.one("select count(*), sum(size), sum(price * size / 1000000)::bigint from trades")

    assert len(past) > 1000
    assert held == (len(past), int(past["size"].sum()), int((past["price"] * past["size"] // ONE).sum()))


def test_every_whole_day_was_counted_against_the_exchange_and_no_gap_is_noted(filled):
    days = filled.conn.execute("select day, kind, agrees, added > 0 from coverage_days order by day").fetchall()

    assert days == [((NOW - timedelta(days=1)).date(), "trades", True, True)]
    assert filled.one("select count(*) from coverage_gaps") == (0,)
    assert filled.one("select count(*) from quarantine") == (0,)


def test_every_match_of_the_past_is_settled_in_the_tables(filled):
    past = filled.sandbox.past
    traded = {past.trade(nth).tx: (int(row["size"]), int(row["price"])) for nth, row in enumerate(past.trades)}

    rows = filled.conn.execute(
        "select '0x' || encode(tx_hash, 'hex'), size, value_usd from settlements where counted"
    ).fetchall()

    settled = {tx: (size, value_usd) for tx, size, value_usd in rows}
    assert settled == {tx: (size, size * price // ONE) for tx, (size, price) in traded.items()}


def test_the_markets_of_the_past_are_resolved_with_their_payouts(filled):
    resolved = [life for life in filled.sandbox.past.lives if life.winner is not None]

    found = filled.conn.execute("select market_id, winning_outcome from markets where status = 'RESOLVED'").fetchall()

    assert dict(found) == {life.market.condition_id: life.winner for life in resolved}


def test_wallets_have_won_and_lost_and_nothing_is_missing_from_their_costs(filled):
    assert filled.one("select count(*) from wallet_positions where held < 0 or left_out > 0") == (0,)
    earned = filled.conn.execute(
        "select pnl_usd from leaderboards where by = 'pnl' and span = 'all' order by rank"
    ).fetchall()

    assert len(earned) == 100
    assert earned[24][0] > 0
    assert filled.one("select count(*) from wallet_positions where realized_usd < 0")[0] > 10


def test_past_hours_have_signals_and_candles(filled):
    types = dict(filled.conn.execute("select type, count(*) from signals group by type").fetchall())
    hours = filled.one("select count(distinct bucket) from candles_1h")

    assert types["momentum"] > 0
    assert types["volume_spike"] > 0
    assert hours[0] > DAYS * 20
    assert filled.one("select count(*) from signals where ts >= %s", NOW) == (0,)


def test_those_who_compute_each_minute_are_asked_for_a_pass(filled):
    asked = {name for (name,) in filled.conn.execute("select name from settings where name like 'asked.%%'")}

    assert asked == {"asked.aggregates", "asked.wallets"}


def test_a_pass_over_wallets_is_requested_once_the_first_days_are_settled(filled):
    settled = [asked for line, asked in filled.reported if line.startswith("settlements of ")]

    assert len(settled) == DAYS + 2
    assert "asked.wallets" in settled[backfill.FIRST_DAYS]


def test_the_first_block_of_a_day_is_found_among_all_of_the_chain(filled):
    head = filled.sandbox.chain.head
    midnight = NOW.replace(hour=0, minute=0)

    first = backfill.block_from(filled.rpc, midnight, head)

    before, at = filled.rpc.blocks(first - 1, first)
    assert before.ts_s < midnight.timestamp() <= at.ts_s
    assert backfill.block_from(filled.rpc, NOW + timedelta(days=1), head) == head + 1


def test_it_rests_after_each_piece_and_waits_while_the_live_feed_is_late():
    slept, late = [], iter([5.0, 3.0, 0.5, 0.5])
    clock = [100.0]

    def sleep(seconds):
        slept.append(seconds)
        clock[0] += seconds

    pause = backfill.Pause(lambda: next(late), 0.5, sleep, lambda: clock[0])
    clock[0] += 2.0
    pause()
    pause()

    assert slept == [2.0, backfill.WAIT_S, backfill.WAIT_S]


def test_one_run_at_a_time_and_none_once_all_is_done():
    state = backfill.BackfillState(14, NOW)
    at_it = [Run("a", "STARTED", (NOW - timedelta(hours=1)).timestamp())]

    def why(state, *, runs=(), beat_at=None, followed=True):
        return defs.reason_to_wait(state, 14, NOW, runs=runs, beat_at=beat_at, followed=followed)

    assert why(state) is None
    assert why(None) is None
    assert why(None, followed=False) == "the live feed comes first"
    assert why(state, runs=at_it, beat_at=NOW - timedelta(seconds=5)) == "a run is started"
    assert why(state, runs=at_it, beat_at=NOW - timedelta(minutes=10)) is None  # its process is gone
    state.finished_at = NOW
    assert why(state) == "14 days have been filled in"
