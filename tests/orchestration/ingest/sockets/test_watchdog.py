import asyncio
from types import SimpleNamespace

import pytest

from orchestration.ingest.books.order_book import OrderBook
from orchestration.ingest.sockets.pulse import Pulse
from orchestration.ingest.sockets.watchdog import MAX_CHECKS_A_SECOND, PUSH_DELAY_S, Watchdog
from upstream.polymarket.book import Book as Snapshot
from upstream.transport.errors import Unavailable

LIMIT = 10.0
BIDS, ASKS = [(480_000, 5_000_000)], [(520_000, 7_000_000)]


class Socket:
    """A fake listener that is silent."""

    def __init__(self, tokens):
        self.tokens = dict.fromkeys(tokens)
        self.number = 1
        self.pulse = Pulse(0.0)
        self.cause = None

    def disconnect(self, cause):
        self.cause = cause


def rest_book(token_id, bids=BIDS, asks=ASKS, ts_ms=2_000, hash_=""):
    return Snapshot(asset_id=token_id, market="", ts_ms=ts_ms, hash=hash_, bids=bids, asks=asks)


def normalizer_of(*token_ids):
    states = {}
    for token_id in token_ids:
        book = OrderBook()
        book.snapshot(BIDS, ASKS, 1_000, "aa")
        states[token_id] = SimpleNamespace(book=book)
    return SimpleNamespace(sequenced=False, states=states, catch_up=lambda _: None)


def watched(answer, tokens=("one", "two"), meanwhile=None):
    """Watch a socket silent for the limit; return the socket and the tokens that were fetched."""
    normalizer, socket, requested = normalizer_of(*tokens), Socket(tokens), []

    async def fetch(token_ids):
        requested.append(token_ids)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def run():
        watchdog = Watchdog(normalizer, fetch, LIMIT)
        watchdog.watch([socket], LIMIT - 0.1)
        assert requested == []
        watchdog.watch([socket], LIMIT)
        watchdog.watch([socket], LIMIT + 0.1)  # it is being checked already
        await asyncio.sleep(0.05)
        if meanwhile:
            meanwhile(normalizer, socket)
        await asyncio.sleep(PUSH_DELAY_S + 0.1)

    asyncio.run(run())
    return socket, requested


def test_a_socket_whose_books_are_the_exchanges_is_quiet():
    socket, requested = watched([rest_book("one"), rest_book("two", hash_="aa", bids=[])])

    assert socket.cause is None
    assert [sorted(tokens) for tokens in requested] == [["one", "two"]]


def test_a_socket_that_kept_a_change_to_itself_is_dead():
    socket, _ = watched([rest_book("one"), rest_book("two", bids=[(490_000, 1_000_000)])])

    assert socket.cause == "silent"


def test_a_change_that_was_on_its_way_is_waited_for():
    changed = [(490_000, 1_000_000)]

    socket, _ = watched(
        [rest_book("one", bids=changed)],
        meanwhile=lambda normalizer, _: normalizer.states["one"].book.snapshot(changed, ASKS, 2_000),
    )

    assert socket.cause is None


def test_an_answer_older_than_what_was_heard_says_nothing():
    socket, _ = watched([rest_book("one", bids=[], ts_ms=500)])

    assert socket.cause is None


@pytest.mark.parametrize(("silent_s", "cause"), [(12.0, None), (20.0, "silent")])
def test_when_rest_does_not_answer_either_a_socket_is_given_a_little_longer(monkeypatch, silent_s, cause):
    monkeypatch.setattr("orchestration.ingest.sockets.watchdog.monotonic", lambda: silent_s)

    socket, _ = watched(Unavailable("gone"))

    assert socket.cause == cause


@pytest.mark.parametrize(("shards", "a_second"), [(1, MAX_CHECKS_A_SECOND), (3, MAX_CHECKS_A_SECOND / 3)])
def test_many_silent_sockets_are_checked_in_turn_the_usually_busiest_first(shards, a_second):
    sockets = [Socket([f"token {n}"]) for n in range(400)]
    for rate, socket in enumerate(sockets):
        socket.pulse.rate = rate / 1000
    checked = []

    async def fetch(token_ids):
        checked.extend(token_ids)
        return []

    async def run():
        watchdog = Watchdog(normalizer_of(*[f"token {n}" for n in range(400)]), fetch, LIMIT, shards=shards)
        busiest, at = [], LIMIT
        for _ in range(600):
            for _ in range(4):
                watchdog.watch(sockets, at)
                at += 0.25
                await asyncio.sleep(0)
            if not busiest:
                busiest = [socket for socket in sockets if socket.pulse.checked_at]
        await asyncio.gather(*watchdog._checks)
        return busiest

    busiest = asyncio.run(run())

    assert 0 < len(busiest) <= 2 * a_second + 1
    assert busiest == sockets[-len(busiest) :]
    assert len(checked) <= (600 + 1) * a_second + 1
    assert len(set(checked)) == 400, "none is never checked"


def test_of_many_books_the_newest_are_compared_and_the_others_in_turn():
    tokens = [f"token {n}" for n in range(220)]
    normalizer, socket = normalizer_of(*tokens), Socket(tokens)
    normalizer.states["token 219"].book.change(1, 470_000, 1_000_000, 5_000)
    watchdog = Watchdog(normalizer, None, LIMIT)

    rounds = [watchdog._token_sample(socket) for _ in range(5)]

    assert all("token 219" in requested and len(requested) <= 100 for requested in rounds)
    assert set().union(*rounds) == set(tokens)


def test_the_usual_rate_is_averaged_and_remembered_over_a_reconnect():
    pulse = Pulse(0.0)
    for second in range(1, 300):
        pulse.beat(float(second), 50)
        pulse.settle(float(second))
    pulse.begin(300.0)

    assert pulse.rate == pytest.approx(50, rel=0.02)
    assert not pulse.doubtful(309.9, LIMIT)
    assert pulse.doubtful(310.0, LIMIT)
