from __future__ import annotations

import pytest

from tests.orchestration.webhooks.receiving import Delivering, receiving


@pytest.fixture
def receiver():
    with receiving() as one:
        yield one


@pytest.fixture
def delivering(database_url):
    """Return `delivering()`, which makes the leader's work, to be done step by step."""
    made = []

    def begin(clock=None, **how):
        made.append(Delivering(database_url, clock, **how))
        return made[-1]

    yield begin
    for one in made:
        one.close()
