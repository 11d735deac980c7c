import asyncio

from orchestration.ingest import resync as module
from orchestration.ingest.gaps.losses import Loss, Losses
from orchestration.ingest.normalizer import Tracker
from orchestration.ingest.resync import Anchoring
from orchestration.ingest.sockets.subscriptions import Following
from tests.orchestration.ingest.making import NOW, book, token

NOBODY = "ws://127.0.0.1:9/"


def test_a_loss_ends_no_earlier_than_the_book_it_ends_with():
    tracker, losses, of = Tracker(), Losses("me"), token(7, 0)
    following = Following(NOBODY, tracker, 4, heard=lambda *_: 0, opened=lambda _: None, lost=lambda *_: None)
    made = Anchoring(tracker, following, losses, fetch=None, silence_s=3.0)
    tracker.follow(of)
    loss = losses.add(Loss.of("closed", [of], NOW))
    ahead_ms = tracker.exchange.now_ms() + 60_000  # of our estimate of the exchange's time
    tracker.take([book(of, [(400_000, 1)], [], ts_ms=ahead_ms)])
    made.turn()

    assert loss.to_ms == ahead_ms


def test_a_socket_that_was_refused_from_the_beginning_is_deaf_and_its_run_not_ready(monkeypatch):
    monkeypatch.setattr(module, "GREETING_S", 0.0)

    async def no_books(_):
        return []

    async def run():
        tracker, losses, refused = Tracker(), Losses("me"), asyncio.Event()
        following = Following(
            NOBODY, tracker, 4, heard=lambda *_: 0, opened=lambda _: None, lost=lambda *_: refused.set()
        )
        made = Anchoring(tracker, following, losses, no_books, silence_s=3.0)
        of = token(7, 0)
        following.take([(of.token_id, of.market_id, 7, 0, None, None, None, None, True)], whole=True, fresh=False)
        await asyncio.wait_for(refused.wait(), 10)
        tracker.take([book(of, [(400_000, 1)], [], ts_ms=NOW)])  # by REST: still nothing of its changes is heard
        made.turn()
        await following.stop()
        return made.deaf_for_s(), made.ready_since

    deaf_for_s, ready_since = asyncio.run(run())

    assert deaf_for_s > 0
    assert ready_since is None
