"""Replay is exact: after a tape, books and candles match the recordings, on both licences.

`make test` plays every tenth of the socket's captures, those of the old shape, and all recordings but the socket's;
`make soak` plays everything.
"""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

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
from tests.replay import rebuilt
from tests.replay.played import UNITS, assert_equal, community_candles, play, stored_books, stored_candles
from upstream.polymarket.gamma.client import Gamma
from upstream.polymarket.gamma.listings import GammaListings
from upstream.polymarket.market_channel.socket import parse
from upstream.sandbox.server import Sandbox
from upstream.transport.http import Client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)  # the first test waits for the whole tape


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
        play(
            sandbox,
            conn,
            url,
            PRESAGE_GAMMA_URL=sandbox.gamma_url,
            PRESAGE_CLOB_URL=sandbox.clob_url,
            PRESAGE_CLOB_SOCKET_URL=sandbox.socket_url,
            PRESAGE_DATA_API_URL=sandbox.data_api_url,
        )
        yield Replayed(url, folder / "truth.jsonl")


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
    assert_equal(stored_candles(replayed.url, table), rebuilt.candles(sent, UNITS[table]))


@pytest.mark.parametrize("table", UNITS)
def test_every_candle_does_so_on_the_community_licence_too(replayed, sent, community, table):
    assert_equal(community_candles(replayed.url, community, table), rebuilt.candles(sent, UNITS[table]))


@pytest.fixture(scope="module")
def book_histories(replayed, recorded) -> Histories:
    return histories(recorded, replayed.truth)


def test_the_book_of_any_moment_equals_one_rebuilt_message_by_message(replayed, book_histories, every):
    differing, outside, inside = compared(replayed.url, book_histories, moments=1000 // every)

    assert differing == {}
    assert outside["verified"] >= 0.8 * outside.total(), (outside, inside)
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
    assert outside["verified"] >= 0.8 * outside.total(), (outside, inside)
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
            in_gap = conn.execute(gaps, (market.key, at, at)).fetchone() is not None
            statuses = inside if in_gap else outside
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
