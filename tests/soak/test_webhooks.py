"""Long-running webhook test: the deliverer is killed fifty times, while receivers fail now and then."""

from __future__ import annotations

import pytest

from tests.orchestration.webhooks import killing

pytestmark = pytest.mark.soak

KILLS, KILLS_PER_RUN = 50, 10


def test_fifty_kills_lose_nothing_and_change_no_id(new_database):
    wrong, twice = {}, 0
    for turn in range(KILLS // KILLS_PER_RUN):
        with new_database() as url:
            different, more = killing.kill_many(url, KILLS_PER_RUN, seed=100 + turn)
        twice += more
        if different:
            wrong[turn] = different
        print(
            f"{(turn + 1) * KILLS_PER_RUN} kills, {len(wrong)} wrong, {twice} messages came more than once", flush=True
        )

    assert wrong == {}
