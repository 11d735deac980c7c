"""Replay is exact: after a tape, books and candles match the recordings, on both licences.

`make test` plays every tenth of the socket's captures, those of the old shape, and all recordings but the socket's;
`make soak` plays everything.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pandas as pd
import pytest

from api.data.lookup import MarketRef
from api.replay.market_channel import ReplayChannel
from api.replay.past_books import PastBooks
from api.replay.player import ReplaySpan
from config import settings
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.storage.rows import Token
from orchestration.maintenance import packs
from orchestration.markets.discovery import Discovery
from sql import database
from tests.patience import PATIENCE_S
from tests.processes import terminate
from tests.replay import rebuilt
from upstream.polymarket.gamma.client import Gamma
from upstream.polymarket.gamma.listings import GammaListings
from upstream.polymarket.market_channel.socket import parse
from upstream.sandbox.server import Sandbox
from upstream.transport.http import Client, tls_context

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(600)  # the first test waits for the whole tape
UNITS = {"candles_1m": "1min", "candles_1h": "1h"}


class Replayed(NamedTuple):
    """A played tape, and the database that the live feed filled from it."""

    url: str
    truth: Path


@pytest.fixture(scope="module", params=[10, pytest.param(1, marks=pytest.mark.soak)], ids=["every-tenth", "all"])
def every(request) -> int:
    """Which of the captures are played: each n-th."""
    return request.param


@pytest.fixture(scope="module")
def recorded(recorded, every, tmp_path_factory) -> Path:
    """The folder of recordings, with the captures that are played."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "ws_market").mkdir()
    whole = {path for path in recorded.glob("ws_market/*") if path.name.startswith("old_shape") or every == 1}
    captures = {*sorted(recorded.glob("ws_market/20*"))[::every], *whole}
    for path in [*captures, *(path for path in recorded.iterdir() if path.name != "ws_market")]:
        (folder / path.relative_to(recorded)).symlink_to(path)
    return folder


@pytest.fixture(scope="module")
def replayed(new_database, recorded, tmp_path_factory) -> Iterator[Replayed]:
    folder = tmp_path_factory.mktemp("replay")
    with (
        new_database() as url,
        Sandbox(tape=recorded, speed=0, hold=True, log=folder / "truth.jsonl") as sandbox,
        database.connect(url, autocommit=True) as conn,
        Client() as client,
    ):
        tape = settings.get().model_copy(update={"source": "tape"})
        Discovery(conn, GammaListings(Gamma(client, sandbox.gamma_url)), tape).scan_open()
        feed = subprocess.Popen(
            [sys.executable, "-m", "orchestration.ingest"],
            cwd=ROOT,
            env={
                **os.environ,
                "DATABASE_URL": url,
                "PRESAGE_SOURCE": "tape",
                "PRESAGE_GAMMA_URL": sandbox.gamma_url,
                "PRESAGE_CLOB_URL": sandbox.clob_url,
                "PRESAGE_CLOB_SOCKET_URL": sandbox.socket_url,
                "PRESAGE_DATA_API_URL": sandbox.data_api_url,
            },
        )
        try:
            wait_until(lambda: leads(conn), feed)
            httpx.post(f"{sandbox.url}/sandbox/play", timeout=PATIENCE_S)
            wait_until(lambda: ended(sandbox), feed)
            wait_until_written(conn, feed)
        finally:
            terminate(feed)
        yield Replayed(url, folder / "truth.jsonl")


def leads(conn) -> bool:
    return conn.execute("select from feed_leases where role = 'leader' and ready").fetchone() is not None


def ended(sandbox: Sandbox) -> bool:
    return httpx.get(f"{sandbox.url}/sandbox/status", timeout=PATIENCE_S, verify=tls_context()).json()["ended"]


def wait_until_written(conn, feed, quiet_s: float = 3.0) -> None:
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


def wait_until(what, feed, within_s: float = 300) -> None:
    until = time.monotonic() + within_s
    while not what():
        assert feed.poll() is None, "the feed ended"
        assert time.monotonic() < until, "too slow"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def sent(replayed) -> pd.DataFrame:
    """Return the tape's trades, as the sandbox sent them."""
    lines = [json.loads(line) for line in replayed.truth.read_text().splitlines()]
    trades = pd.DataFrame([line for line in lines if line["kind"] == "trade"])
    trades["price"] = trades["price"].map(rebuilt.micro)
    trades["size"] = trades["size"].map(rebuilt.micro)
    return trades[["n", "token", "ts_ms", "side", "price", "size", "tx"]]


@pytest.fixture(scope="module")
def captured(recorded) -> dict[str, rebuilt.Book]:
    return rebuilt.last_books(recorded)


def test_every_market_of_the_tape_is_listed_and_every_capture_was_played(replayed, captured, recorded):
    with database.connect(replayed.url) as conn:
        (markets,) = conn.execute("select count(*) from markets where source = 'tape'").fetchone()
        (played,) = conn.execute(
            "select count(*) from book_current join tokens using (market_key, outcome) where token_id = any(%s)",
            [list(captured)],
        ).fetchone()

    assert markets >= 1000
    assert len(list(recorded.glob("ws_market/*.csv.gz"))) >= 2
    assert played == len(captured)


def test_every_stored_book_equals_the_last_one_of_its_capture(replayed, captured, every):
    expected = {
        token: (rebuilt.levels(book[0], best_is_high=True), rebuilt.levels(book[1], best_is_high=False), True)
        for token, book in captured.items()
        if not rebuilt.crossed(book)
    }

    stored = stored_books(replayed.url, list(expected))

    assert len(expected) >= 40 / every
    assert {token: stored.get(token) for token in expected if stored.get(token) != expected[token]} == {}


def test_a_book_whose_capture_began_in_the_middle_is_not_verified(replayed, captured):
    broken = [token for token, book in captured.items() if rebuilt.crossed(book)]

    stored = stored_books(replayed.url, broken)

    assert broken
    assert [verified for _, _, verified in stored.values()] == [False] * len(broken)


def stored_books(url: str, tokens: list[str]) -> dict[str, tuple[list, list, bool]]:
    with database.connect(url) as conn:
        rows = conn.execute(
            """select token_id, bid_prices, bid_sizes, ask_prices, ask_sizes, verified
            from book_current join tokens using (market_key, outcome) where token_id = any(%s)""",
            [tokens],
        ).fetchall()
    return {
        token: (list(zip(bids, bid_sizes, strict=True)), list(zip(asks, ask_sizes, strict=True)), verified)
        for token, bids, bid_sizes, asks, ask_sizes, verified in rows
    }


def test_every_trade_of_the_tape_is_stored_once(replayed, sent, every):
    with database.connect(replayed.url) as conn:
        rows = conn.execute(
            """select token_id, (extract(epoch from ts) * 1000)::bigint, side, price, size
            from trades join tokens using (market_key, outcome)"""
        ).fetchall()

    expected = sorted(
        zip(sent.token, sent.ts_ms, sent.side.map({"BUY": 1, "SELL": -1}), sent.price, sent["size"], strict=True)
    )
    assert len(expected) > 5000 / every
    assert sorted(rows) == expected


@pytest.mark.parametrize("table", UNITS)
def test_every_candle_equals_a_group_by_over_the_tapes_trades(replayed, sent, table):
    with database.connect(replayed.url) as conn:
        kept = conn.execute(
            f"""select token_id, bucket, open, high, low, close, volume, trades
            from {table} join tokens using (market_key, outcome)"""
        ).fetchall()

    assert_equal(kept, rebuilt.candles(sent, UNITS[table]))


@pytest.mark.parametrize("table", UNITS)
def test_every_candle_does_so_on_the_community_licence_too(replayed, sent, community, table):
    with database.connect(replayed.url) as conn:
        found = conn.execute("select token_id, market_key, outcome from tokens").fetchall()
        tokens = {(market_key, outcome): token for token, market_key, outcome in found}
        rows = conn.execute(
            """select format('(%L, %s, %s, %s, %s, %s, %s, %s, %s)',
                ts, market_key, outcome, trade_id, seq, side, price, size, value_usd) from trades"""
        ).fetchall()
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

    assert_equal(
        [
            (tokens[market, outcome], pd.Timestamp(int(bucket), unit="s", tz="UTC"), *map(int, figures))
            for market, outcome, bucket, *figures in kept
        ],
        rebuilt.candles(sent, UNITS[table]),
    )


def assert_equal(kept, expected: pd.DataFrame) -> None:
    found = pd.DataFrame(kept, columns=list(expected.columns)).sort_values(["token", "bucket"]).reset_index(drop=True)
    found["bucket"] = pd.to_datetime(found["bucket"], utc=True)
    assert len(expected) > 10
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


@pytest.fixture(scope="module")
def book_histories(replayed, recorded) -> Histories:
    return histories(recorded, replayed.truth)


def test_the_book_of_any_moment_equals_one_rebuilt_message_by_message(replayed, book_histories, every):
    differing, outside, inside = compared(replayed.url, book_histories, moments=1000 // every)

    assert differing == {}
    assert outside["verified"] > 0.8 * outside.total(), outside
    assert set(inside) <= {"gap"}


@pytest.fixture(scope="module")
def packed(replayed, every) -> Replayed:
    """The same, all packed except the instant of the newest snapshot of each outcome."""
    with pytest.MonkeyPatch.context() as patch, database.connect(replayed.url, autocommit=True) as conn:
        patch.setattr(packs, "horizon", lambda now: now + timedelta(days=1))
        packed = packs.bring_up_to_date(conn, datetime.now(UTC))
        if database.license(conn) == "timescale":  # the columnstore replaces packs
            assert packed == packs.PackingResult()
            return replayed
        assert packed.events > 50_000 / every
        instants = "select market_key, outcome, count(distinct ts) from book_events group by 1, 2"
        assert {count for *_, count in conn.execute(instants)} == {1}
    return replayed


@pytest.mark.license("apache")
def test_packed_books_of_any_moment_equal_those_rebuilt_message_by_message(packed, book_histories, every):
    differing, outside, inside = compared(packed.url, book_histories, moments=1000 // every)

    assert differing == {}
    assert outside["verified"] > 0.8 * outside.total(), outside
    assert set(inside) <= {"gap"}


def test_a_replay_of_the_captures_leads_to_their_last_books(packed, captured):
    tokens = [token for token, book in captured.items() if not rebuilt.crossed(book)][:10]
    listener = Normalizer()
    for n, token in enumerate(tokens):
        listener.follow(Token(token, "", n, 0))

    with database.connect(packed.url, autocommit=True) as conn:
        span = ReplaySpan(datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC) + timedelta(hours=1), 0)
        channel = ReplayChannel(
            lambda query, **asked: list(query(conn, **asked)),
            span,
            send=lambda frame: listener.apply(parse(frame)),
            push=lambda frame: None,
        )
        channel.receive(json.dumps({"type": "market", "assets_ids": tokens}))
        assert channel.player.play()

    books = {token: listener.states[token].book for token in tokens}
    assert {token: (book.bids, book.asks) for token, book in books.items()} == {
        token: tuple({price: size for price, size in side.items() if size} for side in captured[token])
        for token in tokens
    }
    assert {book.state for book in books.values()} == {"verified"}
    assert listener.counts.refused == 0


Histories = dict[str, tuple[list[int], list[rebuilt.Book]]]


def compared(url: str, book_histories: Histories, *, moments: int) -> tuple[dict[Any, Any], Counter[Any], Counter[Any]]:
    """Return the books of random moments that differ from the rebuilt ones, and counts of integrity statuses.

    The first counts are of moments outside all recorded gaps, the others of those inside. How many are inside depends
    on the machine: where a recorded book disagrees with itself, a gap lasts until the exchange has been asked again,
    and a tape at full speed goes on by minutes meanwhile.
    """
    chance = random.Random(1)
    differing: dict[Any, Any] = {}
    outside: Counter[Any] = Counter()
    inside: Counter[Any] = Counter()
    with database.connect(url, autocommit=True) as conn:
        places = {
            token: (MarketRef(key, market_id, ["", ""], ["", ""]), outcome)
            for token, key, outcome, market_id in conn.execute(
                "select token_id, market_key, outcome, market_id from tokens join markets using (market_key)"
            )
        }
        for _ in range(moments):
            token = chance.choice(list(book_histories))
            instants, states = book_histories[token]
            ms = chance.randint(instants[0], instants[-1] + 1000)
            at = datetime.fromtimestamp(ms / 1000, UTC)
            market, outcome = places[token]
            past = PastBooks(lambda query, **asked: list(query(conn, **asked)), market, outcome)
            found = past.book(at)
            expected = states[bisect_right(instants, ms) - 1]
            gaps = """select from coverage_gaps where kind = 'books' and filled_at is null
                and (market_key is null or market_key = %s) and from_ts <= %s and coalesce(to_ts, 'infinity') > %s"""
            statuses = inside if conn.execute(gaps, (market.key, at, at)).fetchone() else outside
            statuses[found and found.integrity.status] += 1
            if found is None or (sides(found.bids), sides(found.asks)) != expected:
                differing[token, ms] = found
    return differing, outside, inside


def histories(folder: Path, truth: Path) -> Histories:
    """Return each token's book after each of its messages, and the instants at which the tape sent them."""
    sent = defaultdict(list)
    for text in truth.read_text().splitlines():
        line = json.loads(text)
        if line["kind"] in ("level", "book"):
            sent[line["token"]].append(line["ts_ms"])
    books: dict[str, rebuilt.Book] = {}
    levels_read: Counter[str] = Counter()
    found: dict[str, tuple[list[int], list[rebuilt.Book]]] = defaultdict(lambda: ([], []))
    for message in rebuilt.messages(folder):
        book = books.setdefault(message.token, ({}, {}))
        rebuilt.apply(book, message)
        at = sent[message.token][levels_read[message.token]]
        levels_read[message.token] += 1 if message.whole else len(message.levels)
        instants, states = found[message.token]
        if not rebuilt.crossed(book):
            instants.append(at)
            states.append(tuple({price: size for price, size in side.items() if size} for side in book))
    return {token: history for token, history in found.items() if not rebuilt.crossed(books[token])}


def sides(levels: list[Any]) -> dict[int, int]:
    return {round(level.price * 1e6): round(level.size * 1e6) for level in levels}
