import asyncio

from orchestration.ingest import resync
from orchestration.ingest.gaps.losses import Loss, Losses
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.resync import BookResync
from orchestration.ingest.sockets.subscriptions import Subscriptions
from tests.orchestration.ingest.builders import NOW, book, token

UNREACHABLE = "ws://127.0.0.1:9/"


def test_a_loss_ends_no_earlier_than_the_book_it_ends_with():
    normalizer, losses, of = Normalizer(), Losses("me"), token(7, 0)
    subscriptions = Subscriptions(
        UNREACHABLE, normalizer, 4, on_messages=lambda *_: 0, on_opened=lambda _: None, on_lost=lambda *_: None
    )
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
            on_messages=lambda *_: 0,
            on_opened=lambda _: None,
            on_lost=lambda *_: refused.set(),
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
