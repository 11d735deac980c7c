import asyncio

import pytest

from config.settings import Settings
from orchestration.feeds.shards import WHOLE
from orchestration.ingest.exchange import ExchangeClient
from orchestration.ingest.session import BEHIND_MS, FETCH_S, LiveSession

NOWHERE = "http://127.0.0.1:9"


async def gap_calls(*, behind_ms):
    """Return the calls that a ready leader's gap task runs in threads, while its writing is `behind_ms` behind."""
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

    async def run_in(_thread, call, *_, **__):
        calls.append(call.__name__)

    session._run_in = run_in
    session.committer.role, session.receiver.resync.ready_since = "leader", 0.0
    session.committer.written_ms = session.receiver.normalizer.exchange.local_ms() - behind_ms
    session._fetched_at -= FETCH_S
    await session._fill_gaps()
    return calls


@pytest.mark.parametrize(("behind_ms", "fetches"), [(BEHIND_MS + 1_000, False), (0, True)])
def test_nothing_is_fetched_from_the_data_api_while_writing_is_behind(behind_ms, fetches):
    calls = asyncio.run(gap_calls(behind_ms=behind_ms))

    assert ("from_data_api" in calls) == fetches
