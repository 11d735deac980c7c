import asyncio
from time import monotonic
from unittest.mock import AsyncMock

import pytest

from config.settings import Settings
from orchestration.feeds.shards import WHOLE
from orchestration.ingest.clock import MAX_SECONDS
from orchestration.ingest.exchange import ExchangeClient
from orchestration.ingest.session import FETCH_S, FETCHED_AFTER_MS, LiveSession
from orchestration.ingest.sockets.listener import SocketListener

NOWHERE = "http://127.0.0.1:9"
NO_CALLBACKS = dict.fromkeys(("on_messages", "on_opened", "on_lost"))


def make_session(**settings):
    """Return a session that nothing is called of yet."""
    return LiveSession(
        Settings(_env_file=None, **settings),
        "postgresql://127.0.0.1:9/none",
        ExchangeClient(NOWHERE, NOWHERE, "ws://127.0.0.1:9/", NOWHERE),
        run_id="me",
        family="polymarket",
        shard=WHOLE,
        window_s=60.0,
        settle_s=1.0,
        observe_s=1.0,
        observed=lambda _: None,
    )


async def filled_after_ms(*, unwritten_ms, lag_ms, all_lag_ms, silent_s):
    """Return how long after its end a gap is filled.

    All messages arrive `all_lag_ms` later than at first, those of a busy socket, last heard from `silent_s` ago, more.
    """
    session, calls = make_session(), []

    async def run_in(_thread, call, *arguments, **__):
        calls.append((call.__name__, *arguments))

    exchange, listener = (
        session.receiver.normalizer.exchange,
        SocketListener(NOWHERE, 1, asyncio.Semaphore(), **NO_CALLBACKS),
    )
    for late_ms in (0, *[all_lag_ms] * MAX_SECONDS):
        exchange.observe(0, late_ms)
        exchange.update(exchange._settled_ms + 1_000)
    listener.newest_ms, listener.pulse.received_at = exchange.now_ms() - lag_ms, monotonic() - silent_s
    session.receiver._busy = [listener]

    session._run_in = run_in
    session.committer.role, session.receiver.resync.ready_since = "leader", 0.0
    session.committer.written_ms = exchange.local_ms() - unwritten_ms
    session._fetched_at -= FETCH_S
    await session._fill_gaps()
    (settle_s,) = [arguments[0] for name, *arguments in calls if name == "from_data_api"]
    return settle_s * 1000 - FETCHED_AFTER_MS


@pytest.mark.parametrize(
    ("unwritten_ms", "lag_ms", "all_lag_ms", "silent_s", "expected_ms"),
    [
        (0, 0, 0, 0.0, 0),
        (60_000, 0, 0, 0.0, 60_000),
        (60_000, 500_000, 0, 0.0, 560_000),
        (60_000, 500_000, 0, 11.0, 60_000),
        (60_000, 500_000, 90_000, 0.0, 650_000),
    ],
)
def test_a_gap_is_filled_from_the_data_api_once_what_lies_around_it_is_delivered_and_written(
    unwritten_ms, lag_ms, all_lag_ms, silent_s, expected_ms
):
    after_ms = asyncio.run(
        filled_after_ms(unwritten_ms=unwritten_ms, lag_ms=lag_ms, all_lag_ms=all_lag_ms, silent_s=silent_s)
    )

    assert expected_ms <= after_ms < expected_ms + 30_000


def test_a_run_that_lost_the_lead_ends_its_fill_so_that_it_can_take_the_lead_again():
    async def filling_may_go_on(role):
        session = make_session()
        session.committer.role = role
        session.committer.tick = AsyncMock(side_effect=lambda **_: session.ending.set())
        await session._tick()
        return not session.filler.stopped

    assert asyncio.run(filling_may_go_on("leader"))
    assert not asyncio.run(filling_may_go_on("standby"))


@pytest.mark.parametrize("taking_over", [True, False])
def test_a_market_followed_while_the_lead_is_being_taken_may_begin_with_a_gap(taking_over):
    async def begun():
        session = make_session()
        subscriptions = session.receiver.subscriptions
        subscriptions.loaded, subscriptions.add = True, lambda *_, **__: {7}
        session._run_in = AsyncMock(side_effect=[([("a token",)], False), {}])
        session.committer.taking_over = taking_over
        await session._refresh_tokens()
        return session.receiver.starts.begun

    assert asyncio.run(begun()) == ({7} if taking_over else set())
