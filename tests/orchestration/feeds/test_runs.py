"""A feed's run, as Dagster knows it."""

import itertools

import dagster as dg
import pytest

from orchestration.feeds import runs
from orchestration.feeds.base import Feed


class EndlessFeed(Feed):
    """Works until it is stopped; another run could go on once it was asked twice."""

    asked = 0

    def may_leave(self):
        self.asked += 1
        return self.asked > 2

    def _works(self):
        return (self._ending.wait,)

    def _totals(self):
        return {"rows": 7}


@dg.op(out=dg.Out(dict))
def follow(context):
    feed = EndlessFeed("test")
    try:
        return runs.execute(context, feed, lambda _: None)
    finally:
        assert feed.asked > 2, "it goes on until another run can"


@dg.job
def following():
    follow()


@pytest.fixture
def instance(monkeypatch):
    monkeypatch.setattr(runs, "LOOK_S", 0.0)
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def test_a_run_that_is_marked_failed_while_its_process_goes_on_ends(instance):
    job_run = instance.create_run_for_job(following)
    finished = runs.Finished(instance, job_run.run_id)
    assert not finished()

    runs.mark_failed(instance, job_run.run_id, "no sign of life for 61 s")
    assert finished()


def test_a_replaced_feed_ends_and_its_run_stays_failed(instance, monkeypatch):
    looks = itertools.chain([False, False], itertools.repeat(True))
    monkeypatch.setattr(runs.Finished, "__call__", lambda _: next(looks))

    result = following.execute_in_process(instance=instance, raise_on_error=False)

    assert not result.success
    (failure,) = (event for event in result.all_events if event.event_type_value == "STEP_FAILURE")
    assert "replaced" in failure.step_failure_data.user_failure_data.description


def test_a_feed_goes_on_while_dagster_s_storage_is_away(instance, monkeypatch):
    finished = runs.Finished(instance, "any")
    monkeypatch.setattr(instance, "get_run_by_id", lambda _: 1 / 0)

    assert not finished()
