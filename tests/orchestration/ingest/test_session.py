import asyncio

import pytest

from config.settings import Settings
from orchestration.feeds.lease import Lease
from orchestration.ingest.exchange import Exchange
from orchestration.ingest.session import BEHIND_MS, FETCH_S, Session

NOWHERE = "http://127.0.0.1:9"


async def helped(*, behind_ms):
    """What a leader with every book asks of its threads when it helps, so far behind with its writing."""
    session = Session(
        Settings(_env_file=None),
        "postgresql://127.0.0.1:9/none",
        Exchange(NOWHERE, NOWHERE, "ws://127.0.0.1:9/", NOWHERE),
        lease=Lease("postgresql://127.0.0.1:9/none", "polymarket", "me", 60.0),
        settle_s=1.0,
        observe_s=1.0,
        observed=lambda _: None,
    )
    asked = []

    async def run_in(_thread, call, *_, **__):
        asked.append(call.__name__)

    session._run_in = run_in
    session.recording.role, session.anchoring.ready_since = "leader", 0.0
    session.recording.written_ms = session.tracker.exchange.our_ms() - behind_ms
    session._fetched_at -= FETCH_S
    await session._help()
    return asked


@pytest.mark.parametrize(("behind_ms", "fetches"), [(BEHIND_MS + 1_000, False), (0, True)])
def test_nothing_is_fetched_from_the_data_api_while_writing_is_behind(behind_ms, fetches):
    asked = asyncio.run(helped(behind_ms=behind_ms))

    assert ("from_data_api" in asked) == fetches
