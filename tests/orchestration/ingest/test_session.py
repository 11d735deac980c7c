import asyncio
from time import monotonic

import pytest

from config.settings import Settings
from orchestration.feeds.shards import WHOLE
from orchestration.ingest.exchange import ExchangeClient
from orchestration.ingest.session import FETCH_S, FETCHED_AFTER_MS, LiveSession
from orchestration.ingest.sockets.listener import SocketListener

NOWHERE = "http://127.0.0.1:9"
NO_CALLBACKS = dict.fromkeys(("on_messages", "on_opened", "on_lost"))


async def settled_after_ms(*, unwritten_ms, lag_ms, silent_s=0.0):
    """Return how long after its end a gap is filled: one busy socket lags, and was last heard from `silent_s` ago."""
    session = LiveSession(
        Settings(_env_file=None),
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
    calls = []

    async def run_in(_thread, call, *arguments, **__):
        calls.append((call.__name__, *arguments))

    exchange, listener = (
        session.receiver.normalizer.exchange,
        SocketListener(NOWHERE, 1, asyncio.Semaphore(), **NO_CALLBACKS),
    )
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
    ("unwritten_ms", "lag_ms", "silent_s", "expected_ms"),
    [(0, 0, 0.0, 0), (60_000, 0, 0.0, 60_000), (60_000, 500_000, 0.0, 560_000), (60_000, 500_000, 11.0, 60_000)],
)
def test_a_gap_is_filled_from_the_data_api_once_what_lies_around_it_is_delivered_and_written(
    unwritten_ms, lag_ms, silent_s, expected_ms
):
    after_ms = asyncio.run(settled_after_ms(unwritten_ms=unwritten_ms, lag_ms=lag_ms, silent_s=silent_s))

    assert expected_ms <= after_ms < expected_ms + 30_000
