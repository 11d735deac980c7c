from __future__ import annotations

import datetime as dt
import socket
import threading

import pytest

from api.data import cache_server
from api.data.cache import Cache
from tests.factories import insert
from tests.patience import PATIENCE_S


def test_the_service_says_that_it_lives(client):
    found = client.simulate_get("/health").json

    assert (found["status"], found["service"], found["project"]) == ("ok", "api", "presage")
    assert abs(found["timestamp"] - dt.datetime.now(dt.UTC).timestamp()) < 60


def test_one_moment_is_told_in_four_ways(client):
    found = client.ask("/v1/time").json

    utc, india = dt.datetime.fromisoformat(found["utc"]), dt.datetime.fromisoformat(found["ist"])
    assert utc == india
    assert india.utcoffset() == dt.timedelta(hours=5, minutes=30)
    assert found["unix"] == found["unix_ms"] // 1000 == int(utc.timestamp())
    assert "Eastern" in found["note"]


def test_the_worst_stage_gives_the_pipeline_its_status(client, conn):
    conn.execute("update stage_clocks set last_data_at = now(), beat_at = now()")
    found = client.ask("/v1/status/pipeline").json
    assert (found["status"], found["redis_up"]) == ("fresh", False)
    assert [stage["stage"] for stage in found["stages"]] == [
        "discovery",
        "discovery_kalshi",
        "ingestion",
        "ingestion_kalshi",
        "settlement",
        "analysis",
        "aggregates",
        "delivery",
    ]
    dt.datetime.fromisoformat(found["checked_at"])


@pytest.mark.parametrize(("silent_s", "status"), [(30, "late"), (600, "stale"), (None, "missing")])
def test_a_stage_that_stops_turns_red_by_itself(client, conn, silent_s, status):
    conn.execute("update stage_clocks set last_data_at = now(), beat_at = now()")
    conn.execute(
        "update stage_clocks set last_data_at = now() - %s * interval '1 second' where stage = 'ingestion'", [silent_s]
    )

    found = client.ask("/v1/status/pipeline").json

    assert found["status"] == status
    assert {stage["stage"]: stage["status"] for stage in found["stages"]}["ingestion"] == status


def test_everything_is_counted_and_says_when_the_day_was_last_added_up(client, conn, add_market):
    markets = [add_market(status=status) for status in ("ACTIVE", "ACTIVE", "RESOLVED")]
    now = dt.datetime.now(dt.UTC).replace(microsecond=0)
    before, computed, ingested = (now - dt.timedelta(minutes=minutes) for minutes in (7, 3, 2))
    for market, at in zip(markets, (before, computed), strict=False):
        conn.execute(
            "insert into market_stats_24h values (%s, 0, 1, 1, 1, 1, 1, 1500000, 3, now(), now(), %s)",
            [market["market_key"], at],
        )
    insert(conn, "chain_heads", {"feed": "settlement", "head": 9, "finalized": 8, "indexed": 9, "trades": 1234})
    conn.execute("update stage_clocks set last_data_at = %s where stage = 'ingestion'", [ingested])

    assert client.ask("/v1/stats").json == {
        "total_markets": 3,
        "active_markets": 2,
        "volume_24h_usd": 3,
        "trades_24h": 6,
        "onchain_trades_total": 1234,
        "last_ingested_at": int(ingested.timestamp()),
        "computed_at": int(computed.timestamp()),
    }


def test_each_exchange_has_its_totals(client, conn, add_market):
    for exchange, count in (("polymarket", 1), ("kalshi", 2)):
        market = {"market_key": add_market(exchange=exchange)["market_key"], "outcome": 0}
        window = dict.fromkeys(("window_start", "window_end", "computed_at"), dt.datetime.now(dt.UTC))
        figures = {"value_usd": count * 1_000_000, "volume": count, "trades": count}
        insert(conn, "market_stats_24h", {**market, **figures, **window, "exchange": exchange})
    insert(conn, "chain_heads", {"feed": "settlement", "head": 9, "finalized": 8, "indexed": 9, "trades": 1234})

    shown = ("total_markets", "volume_24h_usd", "trades_24h", "onchain_trades_total")
    found = {exchange: client.ask(f"/v1/stats?exchange={exchange}").json for exchange in ("polymarket", "kalshi")}

    assert [found["polymarket"][name] for name in shown] == [1, 1, 1, 1234]
    assert [found["kalshi"][name] for name in shown] == [1, 2, 2, None]


def test_the_counts_are_kept_for_half_a_minute(client, add_market):
    before = client.ask("/v1/stats")
    add_market()

    assert client.ask("/v1/stats").json == before.json
    assert before.headers["Cache-Control"] == "private, max-age=30"


def answering(reply):
    """A server that reads commands and sends a reply to each; gives its port and what it read."""
    listener = socket.create_server(("127.0.0.1", 0))
    read = []

    def serve():
        connection, _ = listener.accept()
        with connection, listener:
            while data := connection.recv(1024):
                read.append(data)
                connection.sendall(reply)

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1], read


def test_a_cache_that_answers_is_up():
    port, read = answering(b"+PONG\r\n")

    assert cache_server.ping(f"redis://:pass@127.0.0.1:{port}/0", PATIENCE_S)
    assert read == [b"*2\r\n$4\r\nAUTH\r\n$4\r\npass\r\n", b"*1\r\n$4\r\nPING\r\n"]


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1", "redis://127.0.0.1:99999", "unix:///nowhere", "nonsense"])
def test_a_cache_that_is_not_there_is_down(url):
    assert not cache_server.ping(url)


def test_whether_the_cache_answers_is_told_and_decides_nothing(client, conn, service, monkeypatch):
    conn.execute("update stage_clocks set last_data_at = now(), beat_at = now()")
    monkeypatch.setattr(cache_server.ping, "__defaults__", (PATIENCE_S,))
    port, _ = answering(b"+PONG\r\n")
    told = []

    for url in (f"redis://127.0.0.1:{port}", "redis://127.0.0.1:1"):
        service.redis_url, service.cache = url, Cache()
        told.append(client.ask("/v1/status/pipeline").json)

    assert [(each["redis_up"], each["status"]) for each in told] == [(True, "fresh"), (False, "fresh")]


def test_a_cache_that_refuses_is_down():
    port, _ = answering(b"-NOAUTH\r\n")

    assert not cache_server.ping(f"redis://127.0.0.1:{port}")
    assert not cache_server.is_up(None)
