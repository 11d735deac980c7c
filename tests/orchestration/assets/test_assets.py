"""The assets under Dagster, one after the other, against the sandbox exchange and a real database."""

import dagster as dg
import pytest

from orchestration.assets import candles, maintenance, markets, pipeline
from orchestration.assets import ingest as live
from orchestration.assets import signals as analysis
from orchestration.feeds.reporter import Reporter
from orchestration.ingest.feed import LiveFeed
from orchestration.resources import Database, Exchange
from sql.roles.rights import PIPELINE
from tests.databases import start_jobs
from tests.roles import login_url
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.sandbox.server import Sandbox


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(simulate=5, markets=40, rate=150) as running:
        yield running


def metadata(run, asset):
    *_, event = [event for event in run.get_asset_materialization_events() if event.asset_key == dg.AssetKey(asset)]
    return {name: value.value for name, value in event.materialization.metadata.items()}


@pytest.fixture
def ended_once_recorded(monkeypatch, conn):
    """A run of the feed ends once it has written something of everything, and reported up to when."""
    recorded = """select (select last_data_at is not null from stage_clocks where stage = 'ingestion')
        and 20 <= least(
            (select count(*) from trades), (select count(*) from quotes), (select count(*) from book_events)
        )"""

    class EndedFeed(LiveFeed):
        def run(self, _, observe):
            return super().run(lambda: bool(conn.execute(recorded).fetchone()[0]), observe)

    monkeypatch.setattr(live, "LiveFeed", EndedFeed)


def test_a_second_exchanges_catalogue_is_made_by_assets_of_its_own(instance, database_url, conn):
    with KalshiSandbox(simulate=5, markets=60, hold=True) as kalshi:
        where = Exchange(gamma_url="", clob_url="", clob_socket_url="", data_api_url="", kalshi_url=kalshi.rest_url)
        resources = {"database": Database(url=login_url(database_url, PIPELINE)), "exchange": where}
        made = dg.materialize(
            [markets.kalshi_markets, markets.kalshi_closed_markets], instance=instance, resources=resources
        )

    walked, closed = metadata(made, "kalshi_markets"), metadata(made, "kalshi_closed_markets")
    listed = conn.execute("select count(*) from markets where exchange = 'kalshi'").fetchone()
    assert (walked["walk"], closed["walk"]) == ("full", "history")
    assert walked["dagster/row_count"] == walked["inserted"] == listed[0] > 40
    assert walked["samples"].count("\n") == 6


@pytest.mark.usefixtures("ended_once_recorded")
def test_the_whole_way_from_the_catalogue_to_the_ranking(make, conn):
    start_jobs(conn)
    catalogue = make(markets.markets, markets.closed_markets)
    recorded = make(live.feed, tags={live.WINDOW_TAG: "600"})
    analysed = make(analysis.signals)
    whole = [*dg.load_assets_from_modules([markets, live, candles]), pipeline.pipeline_checks]
    figures = ("candles_1m", "candles_1h", "market_stats_24h", "market_activity", "market_rankings", "book_anchors")
    computed = make(*whole, selection=dg.AssetSelection.assets(*figures) | dg.AssetSelection.all_asset_checks())

    assert metadata(analysed, "signals")["minutes"] == 1
    walked = metadata(catalogue, "markets")
    assert walked["walk"] == "full"
    assert walked["inserted"] == walked["dagster/row_count"] >= 40
    assert walked["samples"].count("\n") == 6  # heading, rule, five markets

    held = dict(  # without the trades that filled in what happened before the first books, which are published too
        conn.execute("""
            with filled as (select coalesce(sum((detail ->> 'trades')::int), 0) as trades from coverage_gaps)
            select 'trades', (select count(*) from trades) - trades from filled
            union all select 'quotes', count(*) from quotes
            union all select 'events', count(*) from book_events
            union all select 'told', (select sum(seq_to - seq_from + 1) from stream_blocks) - trades from filled
        """).fetchall()
    )
    for asset, figure in (
        ("trades", "trades"),
        ("quotes", "quotes"),
        ("book_events", "events"),
        ("stream_events", "told"),
    ):
        # A gap that turns out to be none is deleted, and with it the count of trades fetched for it meanwhile.
        fetched = range(3) if asset in {"trades", "stream_events"} else range(1)
        assert held[figure] - metadata(recorded, asset)[figure] in fetched
        assert held[figure] > 0
    assert metadata(recorded, "live_books")["role"] == "leader"

    trades, value = conn.execute("select count(*), sum(value_usd) from trades").fetchone()
    assert conn.execute("select sum(trades), sum(value_usd) from market_stats_24h").fetchone() == (trades, value)
    assert (
        metadata(computed, "market_rankings")["dagster/row_count"]
        >= metadata(computed, "market_stats_24h")["dagster/row_count"] / 2
    )
    ranked = conn.execute("select question from market_rankings join markets using (market_key) order by rank limit 1")
    assert f"| 1 | {ranked.fetchone()[0]} |" in metadata(computed, "market_rankings")["most_traded"]

    checks = {(check.asset_key.path[-1], check.check_name): check for check in computed.get_asset_check_evaluations()}
    failed = {key for key, check in checks.items() if not check.passed}
    assert failed <= {("trades", "lag")}  # of a machine that is busy with tests
    assert len(checks) == len(pipeline.SPECS)


def test_storage_tells_the_size_of_every_table(make):
    run = make(maintenance.storage)

    told = metadata(run, "storage")
    assert told["markets, MB"] > 0
    assert told["dropped trades"] == 0


def test_the_history_of_runs_is_cut_by_an_asset_too(make, instance):
    told = metadata(make(maintenance.run_history), "run_history")

    assert told["finished"] is True
    assert told["kept"] == instance.get_runs_count() >= 1


def said(role, **more):
    totals = dict.fromkeys({name for names in live.SHOWN.values() for name in names} | {"tokens", "sockets"}, 7)
    return {**totals, "role": role, **more}


class Context:
    """The two attributes of a run's context that a reporter uses."""

    def __init__(self, *, broken=False):
        self.log = self
        self.broken = broken
        self.events = []

    def info(self, *_):
        pass

    def log_event(self, event):
        if self.broken:
            raise ConnectionError("the storage is away")
        self.events.append(event)


def test_a_leader_tells_of_each_asset_and_materialises_now_and_then():
    context = Context()
    reporter = Reporter(context, live.SHOWN, live.STANDBY)
    for _ in range(3):
        reporter.observe(said("leader"))

    kinds = [type(event).__name__ for event in context.events]
    assert kinds == ["AssetMaterialization"] * 6 + ["AssetObservation"] * 12
    assert context.events[0].metadata["lag_p99_ms"].value == 7
    assert reporter.led


def test_a_standby_tells_only_that_it_stands_by():
    context = Context()
    reporter = Reporter(context, live.SHOWN, live.STANDBY)
    reporter.observe(said("standby"))

    assert [(event.asset_key.path, event.metadata["role"].value) for event in context.events] == [
        (["live_books"], "standby")
    ]
    assert not reporter.led


def test_the_feed_outlives_dagsters_storage():
    reporter = Reporter(Context(broken=True), live.SHOWN, live.STANDBY)

    reporter.observe(said("leader"))

    assert reporter.led
