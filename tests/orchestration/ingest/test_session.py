import asyncio

from config.settings import Settings
from orchestration.feeds.shards import WHOLE
from orchestration.ingest.exchange import ExchangeClient
from orchestration.ingest.session import FETCH_S, LiveSession

NOWHERE = "http://127.0.0.1:9"


async def gap_calls(*, committed_ms):
    """Return the calls that a ready leader's gap task runs in threads, with their arguments."""
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

    session._run_in = run_in
    session.committer.role, session.receiver.resync.ready_since = "leader", 0.0
    session.committer.exchange_ms = committed_ms
    session._fetched_at -= FETCH_S
    await session._fill_gaps()
    return calls


def test_gaps_are_filled_from_the_data_api_up_to_what_is_committed():
    assert ("from_data_api", 1.0, 123_456) in asyncio.run(gap_calls(committed_ms=123_456))
