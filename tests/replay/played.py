"""Plays a tape of a sandbox to a live feed, and reads the books and candles that the database has afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pandas as pd

from sql import database
from tests.patience import PATIENCE_S
from tests.processes import terminate
from upstream.transport.http import tls_context

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
UNITS = {"candles_1m": "1min", "candles_1h": "1h"}


def play(sandbox, conn, url: str, *options: str, **environment: str) -> None:
    """Play the tape of a held sandbox to a feed of its own process, until all of it is written."""
    feed = subprocess.Popen(
        [sys.executable, "-m", "orchestration.ingest", *options],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url, "PRESAGE_SOURCE": "tape", **environment},
    )
    try:
        _wait_until(lambda: _leads(conn), feed)
        httpx.post(f"{sandbox.url}/sandbox/play", timeout=PATIENCE_S, verify=tls_context())
        _wait_until(lambda: _ended(sandbox), feed)
        _wait_until_written(conn, feed)
    finally:
        terminate(feed)


def _leads(conn) -> bool:
    return conn.execute("select from feed_leases where role = 'leader' and ready").fetchone() is not None


def _ended(sandbox) -> bool:
    return httpx.get(f"{sandbox.url}/sandbox/status", timeout=PATIENCE_S, verify=tls_context()).json()["ended"]


def _wait_until_written(conn, feed, quiet_s: float = 3.0) -> None:
    """Wait until nothing more is written, waiting to be written, or missing: a busy machine may lose a socket."""
    count = """select (select count(*) from book_events), (select count(*) from trades),
        (select max(seq) from live_books),
        (select count(*) from coverage_gaps where kind = 'trades' and filled_at is null),
        (select (detail ->> 'backlog_events')::int from feed_leases where role = 'leader')"""
    seen, since = None, time.monotonic()
    while time.monotonic() - since < quiet_s or any(seen[-2:]):  # a gap that is open, or a batch that waits
        assert feed.poll() is None
        now = conn.execute(count).fetchone()
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.2)


def _wait_until(what, feed, within_s: float = 300) -> None:
    until = time.monotonic() + within_s
    while not what():
        assert feed.poll() is None, "the feed ended"
        assert time.monotonic() < until, "too slow"
        time.sleep(0.1)


def stored_books(url: str, tokens: Sequence[str]) -> dict[str, tuple[list, list, bool]]:
    """Return the newest books of tokens: bids and asks, best first, and whether they are verified."""
    with database.connect(url) as conn:
        rows = conn.execute(
            """select token_id, bid_prices, bid_sizes, ask_prices, ask_sizes, verified
            from book_current join tokens using (market_key, outcome) where token_id = any(%s)""",
            [list(tokens)],
        ).fetchall()
    return {
        token: (list(zip(bids, bid_sizes, strict=True)), list(zip(asks, ask_sizes, strict=True)), verified)
        for token, bids, bid_sizes, asks, ask_sizes, verified in rows
    }


def stored_candles(url: str, table: str) -> list[Any]:
    """Return the database's candles."""
    with database.connect(url) as conn:
        return conn.execute(
            f"""select token_id, bucket, open, high, low, close, volume, trades
            from {table} join tokens using (market_key, outcome)"""
        ).fetchall()


def community_candles(url: str, community, table: str) -> list[Any]:
    """Write the database's trades into one of the other licence, and return the candles that this has then."""
    with database.connect(url) as conn:
        found = conn.execute("select token_id, market_key, outcome from tokens").fetchall()
        rows = conn.execute(
            """select format('(%L, %s, %s, %s, %s, %s, %s, %s, %s)',
                ts, market_key, outcome, trade_id, seq, side, price, size, value_usd) from trades"""
        ).fetchall()
    tokens = {(market_key, outcome): token for token, market_key, outcome in found}
    for start in range(0, len(rows), 1000):
        values = ", ".join(row[0] for row in rows[start : start + 1000])
        community.execute(
            "insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd) values " + values
        )
    community.refresh()
    kept = community.execute(
        f"""select market_key, outcome, extract(epoch from bucket)::bigint, open, high, low, close, volume, trades
        from {table}"""
    )
    return [
        (tokens[market, outcome], pd.Timestamp(int(bucket), unit="s", tz="UTC"), *map(int, figures))
        for market, outcome, bucket, *figures in kept
    ]


def assert_equal(kept: list[Any], expected: pd.DataFrame) -> None:
    """Assert that candles are the expected ones, and that there are some."""
    found = pd.DataFrame(kept, columns=list(expected.columns)).sort_values(["token", "bucket"]).reset_index(drop=True)
    found["bucket"] = pd.to_datetime(found["bucket"], utc=True)
    assert len(expected) > 10
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
