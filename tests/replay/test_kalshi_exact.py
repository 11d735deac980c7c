"""Replay of Kalshi is exact: after a tape, books and candles match what was recorded, on both licences.

The tape is recorded from the simulation by a client that knows only the protocol; no real recording is to be had.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, NamedTuple

import httpx
import pandas as pd
import pytest

from orchestration.markets import catalogue
from sql import database
from tests.replay import rebuilt
from tests.replay.played import UNITS, assert_equal, community_candles, play, stored_books, stored_candles
from tests.upstream.sandbox.kalshi.conftest import (
    SECOND,
    START_MS,
    KalshiListener,
    Signer,
    converse,
    get,
    open_tickers,
)
from tests.upstream.sandbox.kalshi.conftest import play as advance
from upstream.kalshi.fields import token_id
from upstream.kalshi.rest.client import Kalshi
from upstream.kalshi.rest.listings import KalshiListings
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.transport.http import Client, tls_context
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REST = "/trade-api/v2"
MARKETS = 20
HOUR = 3_600_000
PLAYED_S = 8  # played at once: what is much further ahead of the clock is refused
pytestmark = pytest.mark.timeout(600)


class Recorded(NamedTuple):
    """A folder of recordings, and what was received while it was made."""

    folder: Path
    heard: KalshiListener


class Replayed(NamedTuple):
    """A database that the live feed filled from the tape, and the log of what was played."""

    url: str
    truth: Path


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=60, trust_env=False, verify=tls_context()) as client:
        yield client


@pytest.fixture(scope="module")
def recording(tmp_path_factory, http: httpx.Client) -> Recorded:
    """Eight seconds of a busy simulation, as a client receives them."""
    folder = tmp_path_factory.mktemp("tape")
    with KalshiSandbox(simulate=11, start_ms=START_MS, markets=40, rate=600, hold=True) as sandbox:
        advance(sandbox, 5 * SECOND)
        tickers = [each for each in open_tickers(http, sandbox, 1000) if lasts(sandbox, each)][:MARKETS]
        for path, query in (("/series", {}), ("/events", {}), ("/markets", {"limit": 1000})):
            answer = {"path": REST + path, "body": get(http, sandbox, path, **query)}
            packed = gzip.compress(json.dumps({"at_ms": sandbox.exchange.now_ms, **answer}).encode())
            (folder / f"{path[1:]}.json.gz").write_bytes(packed)

        async def talk(listener: KalshiListener) -> None:
            await listener.subscribe("orderbook_delta", market_tickers=tickers, use_yes_price=True)
            await listener.subscribe("trade", market_tickers=tickers)
            for _ in range(PLAYED_S):
                await listener.play(SECOND)

        heard = converse(sandbox, http, talk)
    sent = {"cmd": "subscribe", "params": {"channels": ["orderbook_delta"], "use_yes_price": True}}
    lines = [{"at_ms": START_MS, "sent": sent}]
    lines += [{"at_ms": one.get("sending_ts_ms", START_MS), "frame": one} for one in heard.messages]
    (folder / "socket.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Recorded(folder, heard)


def lasts(sandbox: KalshiSandbox, ticker: str) -> bool:
    """Return whether a market is open for much longer than its recording."""
    return sandbox.exchange.markets[ticker].close_ms > START_MS + HOUR


@pytest.fixture(scope="module")
def replayed(new_database, recording, http, tmp_path_factory) -> Iterator[Replayed]:
    folder = tmp_path_factory.mktemp("replay")
    with (
        new_database() as url,
        KalshiSandbox(tape=recording.folder, speed=0, hold=True, log=folder / "truth.jsonl") as sandbox,
        database.connect(url, autocommit=True) as conn,
        Client() as client,
    ):
        for page in KalshiListings(Kalshi(client, sandbox.rest_url)).open_pages():
            catalogue.store(conn, [item.row("tape") for item in page.items], cause="discovered")
        signer = Signer(sandbox, http)
        key = folder / "key.pem"
        key.touch(mode=0o600)
        key.write_text(signer.pem)
        play(
            sandbox,
            conn,
            url,
            *("--exchange", "kalshi"),
            PRESAGE_EXCHANGES="polymarket,kalshi",
            PRESAGE_KALSHI_URL=sandbox.rest_url,
            PRESAGE_KALSHI_SOCKET_URL=sandbox.socket_url,
            PRESAGE_KALSHI_KEY_ID=signer.id,
            PRESAGE_KALSHI_PRIVATE_KEY_FILE=str(key),
        )
        yield Replayed(url, folder / "truth.jsonl")


@pytest.fixture(scope="module")
def sent(replayed) -> pd.DataFrame:
    """Return the tape's trades, as the sandbox sent them."""
    lines = [json.loads(line) for line in replayed.truth.read_text().splitlines()]
    rows = [{"n": line["n"], **line["msg"]} for line in lines if line["kind"] == "trade"]
    return pd.DataFrame(
        {
            "n": [row["n"] for row in rows],
            "token": [token_id(row["market_ticker"], 0) for row in rows],
            "ts_ms": [row["ts_ms"] for row in rows],
            "side": [1 if row["taker_outcome_side"] == "yes" else -1 for row in rows],
            "price": [rebuilt.micro(row["yes_price_dollars"]) for row in rows],
            "size": [rebuilt.micro(row["count_fp"]) for row in rows],
        }
    )


def test_every_stored_book_equals_the_last_one_of_the_recording(replayed, recording):
    expected = {}
    for ticker, sides in recording.heard.books().items():
        yes, others = (
            [(rebuilt.micro(price), round(size * ONE)) for price, size in sides[side].items()] for side in ("yes", "no")
        )
        no = [(ONE - price, size) for price, size in others]  # the recording has YES prices
        for outcome, (bids, asked) in enumerate(((yes, no), (no, yes))):
            asks = sorted((ONE - price, size) for price, size in asked)
            expected[token_id(ticker, outcome)] = (sorted(bids, reverse=True), asks, True)

    stored = stored_books(replayed.url, [*expected])

    assert len(expected) == 2 * MARKETS
    assert any(bids and asks for bids, asks, _ in expected.values())
    assert {token: stored.get(token) for token in expected if stored.get(token) != expected[token]} == {}


def test_every_trade_of_the_recording_is_stored_once(replayed, recording, sent):
    with database.connect(replayed.url) as conn:
        rows = conn.execute(
            "select token_id, as_ms(ts), side, price, size from trades join tokens using (market_key, outcome)"
        ).fetchall()

    assert len(sent) == len(recording.heard.of("trade")) > 100
    assert sorted(rows) == sorted(sent[["token", "ts_ms", "side", "price", "size"]].itertuples(index=False, name=None))


@pytest.mark.parametrize("table", UNITS)
def test_every_candle_equals_a_group_by_over_the_recorded_trades(replayed, sent, table):
    assert_equal(stored_candles(replayed.url, table), rebuilt.candles(sent, UNITS[table]))


@pytest.mark.parametrize("table", UNITS)
def test_every_candle_does_so_on_the_community_licence_too(replayed, sent, community, table):
    assert_equal(community_candles(replayed.url, community, table), rebuilt.candles(sent, UNITS[table]))


def test_nothing_of_the_recording_was_refused_or_out_of_order(replayed):
    with database.connect(replayed.url) as conn:
        assert conn.execute("select count(*) from quarantine").fetchone() == (0,)
        causes = {cause for (cause,) in conn.execute("select cause from coverage_gaps")}
        assert "sequence" not in causes, "a busy machine may lose a socket, but no message"
