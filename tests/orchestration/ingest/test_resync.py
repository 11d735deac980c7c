import asyncio

import pytest

from orchestration.ingest import resync
from orchestration.ingest.books.token_state import NO_BOOK_ATTEMPTS
from orchestration.ingest.exchanges.base import Missed
from orchestration.ingest.gaps.losses import Loss, Losses
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.resync import BookResync
from orchestration.ingest.sockets.listener import SocketListener
from orchestration.ingest.sockets.subscriptions import Subscriptions
from tests.orchestration.ingest.builders import NO_CALLBACKS, NOW, UNREACHABLE, book, token, trade


class SocketWorld:
    """A socket whose connection is lost, beside another that holds a token of its own."""

    def __init__(self):
        self.normalizer, self.losses = Normalizer(), Losses("me")
        subscriptions = Subscriptions(UNREACHABLE, self.normalizer, 4, **NO_CALLBACKS)
        self.resync = BookResync(self.normalizer, subscriptions, self.losses, fetch=None, silence_s=3.0)
        self.socket = SocketListener(UNREACHABLE, 1, asyncio.Semaphore(), **NO_CALLBACKS, now_ms=None)
        self.normalizer.follow(token(99))

    def follow(self, *tokens):
        for of in tokens:
            self.normalizer.follow(of)
        self.socket.follow(of.token_id for of in tokens)

    def sync(self, *tokens, ts_ms=NOW, price=400_000):
        self.normalizer.apply([book(of, [(price, 1)], [], ts_ms=ts_ms) for of in tokens])
        self.update()

    def update(self):
        self.resync._scan_at = 0.0  # without the pause after the last one
        self.resync.update()

    def lose(self):
        self.resync.lost(self.socket, "closed")

    def missed(self):
        assert self.losses.open() == []
        return [loss.missed for loss in self.losses.all]


def test_a_socket_that_is_lost_again_misses_what_was_followed_meanwhile():
    world, first, waiting, later = SocketWorld(), token(1), token(2), token(3)
    world.follow(first, waiting)
    world.sync(first, waiting)
    world.lose()
    world.sync(first)
    world.follow(later)
    world.sync(later)
    world.lose()
    world.lose()

    held = [loss.token_ids for loss in world.losses.open()]
    assert held == [{first.token_id, waiting.token_id}, {later.token_id}]

    world.sync(first, later, ts_ms=NOW + 1)
    assert [loss.token_ids for loss in world.losses.open()] == held[:1]
    assert world.resync.disconnected_s() > 0

    world.sync(waiting, ts_ms=NOW + 1)
    assert world.losses.open() == []
    assert world.resync.disconnected_s() == 0


@pytest.mark.parametrize("connected", [True, False])
def test_a_listing_was_heard_unless_there_was_no_connection(connected):
    world, followed, announced = SocketWorld(), token(1), token(2)
    world.normalizer.pending[announced.token_id] = []
    world.normalizer.follow(followed, listed_ms=NOW)
    world.socket.follow([followed.token_id, announced.token_id])
    if not connected:
        world.resync.opened(world.socket)
    world.normalizer.follow(announced, listed_ms=NOW)
    world.sync(followed, announced)

    states = world.normalizer.states
    assert [states[of.token_id].listed_ms for of in (followed, announced)] == [NOW if connected else 0] * 2


@pytest.fixture(params=[False, True], ids=["some", "everything"])
def connected(request):
    """Return a world whose socket holds two synced tokens, and either others exist besides or they are all."""
    world = SocketWorld()
    if request.param:
        world.normalizer.unfollow(token(99).token_id)
    world.follow(token(1), token(2))
    world.sync(token(1), token(2))
    world.lose()
    world.sync(token(1), token(2))
    return world


def test_an_outage_after_which_all_books_are_unchanged_missed_nothing(connected):
    assert connected.missed() == [False]


def test_a_book_that_is_gone_after_an_outage_may_have_changed_in_it(connected):
    connected.lose()
    connected.sync(token(1))
    connected.normalizer.states[token(2).token_id].fetch_attempts = NO_BOOK_ATTEMPTS
    connected.update()

    assert connected.missed() == [False, True]


def test_a_book_that_changed_in_an_outage_counts_although_its_socket_is_lost_again(connected):
    connected.lose()
    connected.sync(token(1), ts_ms=NOW + 1, price=500_000)
    connected.lose()
    connected.sync(token(1), ts_ms=NOW + 1, price=500_000)
    connected.sync(token(2))

    assert connected.missed() == [False, True]


def test_a_market_that_is_unfollowed_before_its_book_is_synced_may_have_missed_something(connected):
    connected.lose()
    connected.normalizer.unfollow(token(2).token_id)
    connected.sync(token(1))

    assert connected.missed() == [False, True]


def test_unchanged_books_say_nothing_of_a_loss_that_began_before_they_were_synced(connected):
    connected.losses.add(Loss.of("no feed running", [token(1), token(2)], NOW - 60_000))
    connected.update()

    assert connected.missed() == [False, True]


def test_an_announced_market_whose_socket_is_lost_before_the_catalogue_knows_it_begins_with_its_next_book():
    world, of = SocketWorld(), token(7)
    world.socket.follow([of.token_id])
    world.normalizer.pending[of.token_id] = []
    world.sync(of, ts_ms=NOW)
    world.lose()
    world.normalizer.apply([trade(of, ts_ms=NOW + 5_000)])
    world.sync(of, ts_ms=NOW + 6_000)
    state = world.normalizer.follow(of, listed_ms=NOW)

    assert state.first_ms == NOW + 6_000
    assert not state.listed_ms
    assert [row.ts_ms for row in world.normalizer.cut_batch().trades] == [NOW + 5_000]
    assert not world.normalizer.interrupted


def test_a_loss_ends_no_earlier_than_the_book_it_ends_with():
    normalizer, losses, of = Normalizer(), Losses("me"), token(7, 0)
    subscriptions = Subscriptions(UNREACHABLE, normalizer, 4, **NO_CALLBACKS)
    made = BookResync(normalizer, subscriptions, losses, fetch=None, silence_s=3.0)
    normalizer.follow(of)
    loss = losses.add(Loss.of("closed", [of], NOW))
    ahead_ms = normalizer.exchange.now_ms() + 60_000  # of our estimate of the exchange's time
    normalizer.apply([book(of, [(400_000, 1)], [], ts_ms=ahead_ms)])
    made.update()

    assert loss.to_ms == ahead_ms


def test_a_socket_refused_from_the_beginning_is_disconnected_and_its_run_not_ready(monkeypatch):
    monkeypatch.setattr(resync, "GREETING_S", 0.0)

    async def no_books(_):
        return []

    async def run():
        normalizer, losses, refused = Normalizer(), Losses("me"), asyncio.Event()
        subscriptions = Subscriptions(
            UNREACHABLE,
            normalizer,
            4,
            **NO_CALLBACKS | {"on_lost": lambda *_: refused.set()},
        )
        made = BookResync(normalizer, subscriptions, losses, no_books, silence_s=3.0)
        of = token(7, 0)
        subscriptions.apply([(of.token_id, of.market_id, 7, 0, None, None, None, None, True)], whole=True, fresh=False)
        await asyncio.wait_for(refused.wait(), 10)
        normalizer.apply([book(of, [(400_000, 1)], [], ts_ms=NOW)])  # by REST: its changes are still not received
        made.update()
        await subscriptions.stop()
        return made.disconnected_s(), made.ready_since

    disconnected_s, ready_since = asyncio.run(run())

    assert disconnected_s > 0
    assert ready_since is None


def numbered_world():
    """Return a world whose messages are numbered, and what its socket was asked for."""
    world, asked = SocketWorld(), []
    world.normalizer.sequenced = True
    world.resync._subscriptions.of_token = {token(key).token_id: world.socket for key in (1, 2)}
    world.socket.greeted = True
    world.socket.request_books = lambda token_ids: asked.append(list(token_ids))
    return world, asked


def test_books_that_a_connection_has_missed_changes_of_are_a_loss_until_they_come_anew():
    world, _ = numbered_world()
    first, other = token(1), token(2)
    world.follow(first, other)
    world.sync(first, other)
    world.resync.missed(Missed("sequence", [first.token_id, "not followed"], NOW - 100, ("books",), books=True))
    (loss,) = world.losses.open()
    assert (loss.cause, loss.from_ms, loss.kinds, loss.token_ids) == (
        "sequence", NOW - 100, ("books",), {first.token_id}
    )  # fmt: skip
    assert world.normalizer.states[first.token_id].complete_since_ms is None
    assert world.normalizer.states[other.token_id].book.state == "verified"

    world.sync(first, ts_ms=NOW + 5)
    assert world.losses.open() == []


def test_trades_that_a_connection_has_missed_are_a_loss_that_is_over():
    world, _ = numbered_world()
    of = token(1)
    world.follow(of)
    world.sync(of)
    state = world.normalizer.states[of.token_id]
    state.complete_since_ms = 1
    world.resync.missed(Missed("sequence", [of.token_id], NOW - 100, ("trades",), books=False))

    (loss,) = world.losses.all
    assert (loss.kinds, loss.from_ms) == (("trades",), NOW - 100)
    assert loss.to_ms >= NOW - 100
    assert state.book.state == "verified"
    assert state.complete_since_ms > 1, "it cannot fill the same gap of another run"


@pytest.mark.parametrize("books", [True, False])
def test_what_a_connection_has_missed_of_an_announced_market_belongs_to_its_start(books):
    world, of = numbered_world()[0], token(7)
    world.normalizer.pending[of.token_id] = []
    world.sync(of, ts_ms=NOW)
    world.resync.missed(Missed("sequence", [of.token_id], NOW + 1, ("books",), books=books))
    world.sync(of, ts_ms=NOW + 6_000)
    state = world.normalizer.follow(of, listed_ms=NOW)

    assert world.losses.all == []
    assert not state.listed_ms
    assert state.first_ms == (NOW + 6_000 if books else NOW), "books that the missed changes belong to do not count"


def test_what_was_missed_of_markets_that_are_not_followed_is_no_loss():
    world, _ = numbered_world()
    world.resync.missed(Missed("sequence", ["1"], NOW, ("books",), books=True))

    assert world.losses.all == []


def test_a_book_that_does_not_come_is_asked_for_and_nothing_waits_for_it_but_a_gap_says_so(monkeypatch):
    monkeypatch.setattr(resync, "REQUEST_S", 0.0)
    monkeypatch.setattr(resync, "NUMBERED_GREETING_S", 0.0)
    world, asked = numbered_world()
    of, other = token(1), token(2)
    world.follow(of, other)
    world.sync(of, other)
    world.lose()
    world.sync(other)
    (lost,) = world.losses.open()
    world.resync.opened(world.socket)
    for _ in range(NO_BOOK_ATTEMPTS):
        world.update()
    assert asked == [[of.token_id]] * NO_BOOK_ATTEMPTS
    world.update()

    assert world.losses.open() == [], "nothing waits for it"
    lasting = world.losses.all[-1]
    assert (lasting.cause, lasting.token_ids, lasting.to_ms) == (resync.NO_BOOK, {of.token_id}, None)
    assert lasting.from_ms <= lost.to_ms, "without a hole"
    assert world.losses.unsaved_ms() == min(lost.from_ms, lasting.from_ms)
    lasting.gap_ids = [1]
    world.losses.all = [lasting]
    assert world.losses.unsaved_ms() is None, "the next leader closes it"

    world.sync(of, ts_ms=NOW + 9_000)
    assert lasting.to_ms >= NOW + 9_000
    world.update()
    assert world.losses.all == [lasting]


def test_what_a_connection_asks_for_by_itself_is_not_asked_for_at_once():
    world, asked = numbered_world()
    of = token(1)
    world.follow(of)
    world.update()

    assert asked == []
    assert world.normalizer.states[of.token_id].due_at > 0


def test_a_numbered_connection_that_is_lost_may_have_missed_what_is_a_little_older():
    world, _ = numbered_world()
    of = token(1)
    world.follow(of)
    world.sync(of)
    world.socket.newest_ms = NOW
    world.lose()

    (loss,) = world.losses.open()
    assert loss.from_ms == NOW - resync.MARGIN_MS
