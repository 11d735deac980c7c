"""A writer on a database of its own, beside a real chain."""

from __future__ import annotations

import pytest

from orchestration.settlement.follow import Follower
from orchestration.settlement.ranges import Ranges
from orchestration.settlement.writer import Writer
from sql import database
from tests.chain import events
from tests.orchestration.settlement.plain import Plain
from upstream.chain.contracts import POLYGON

ALWAYS = float("inf")  # a test's blocks are old


@pytest.fixture
def db(database_url):
    with database.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def follower(db, chain):
    def make(source=None, *, publish_within_s=ALWAYS, **given):
        writer = Writer(db, POLYGON, publish_within_s=publish_within_s)
        return Follower(writer, source or Plain(chain), POLYGON, **{"start": 0, "patience_s": 0.0, **given})

    return make


@pytest.fixture
def ranges(db, chain):
    def make(source=None, *, publish_within_s=ALWAYS, **given):
        writer = Writer(db, POLYGON, publish_within_s=publish_within_s)
        return Ranges(writer, source or Plain(chain), POLYGON, sleep=lambda _: None, **given)

    return make


@pytest.fixture
def until_done():
    """Step until there is nothing to do: the head reached, no hole, everything final recounted."""

    def run(following, most=500):
        for _ in range(most):
            step = following.step()
            if not step.busy and not step.written.blocks and not step.checked.blocks:
                return step
        raise AssertionError(f"not done after {most} steps: {step}")

    return run


@pytest.fixture
def match():
    def make(n, token=1001):
        fill = events.fill_v2(maker=events.wallet(n), taker=events.wallet(n + 1), token=token, shares=n * 1_000_000 + 7)
        return events.match_v2([fill])

    return make
