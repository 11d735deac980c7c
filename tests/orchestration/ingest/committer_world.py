"""A committer of one market, whose calls of the database run at once."""

import asyncio

from orchestration.ingest.committer import Committer
from orchestration.ingest.gaps.losses import Losses
from orchestration.ingest.storage.backlog import Backlog
from tests.orchestration.ingest.builders import make_normalizer, token

YES = token(7, 0)


class NoGapFiller:
    needed_since_ms = 1 << 62

    async def fill_on_takeover(self, now_ms):
        pass


def make_committer(leader, *, capacity=1_000_000, clock=None, run_id="me", sockets=(), begun=None):
    async def in_thread(call, *args, **named):
        return call(*args, **named)

    normalizer = make_normalizer(YES) if clock is None else make_normalizer(YES, clock=clock)
    backlog, losses = Backlog(capacity), Losses(run_id)
    committer = Committer(
        normalizer,
        backlog,
        losses,
        leader,
        NoGapFiller(),
        in_thread=in_thread,
        socket_newest_ms=lambda: sockets,
        run_id=run_id,
        book_flush_s=60.0,
        ring_s=15,
        begun=begun if begun is not None else set(),
    )
    return committer, normalizer, backlog, losses


def tick(committer, **how):
    asyncio.run(committer.tick(ready=True, **how))
