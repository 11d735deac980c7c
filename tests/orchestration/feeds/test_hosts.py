"""Each feed is run by two hosts, and every host decides alike which."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.feeds.hosts import HostedRun, OwnRun, assigned, changes

FEEDS = ["polymarket/1of2", "polymarket/2of2", "settlement"]


def lease(feed, host, *, run_id=None, ready=True, silent_s=0.5, has_left=False):
    return HostedRun(run_id or f"{host} {feed}", feed, host, ready, silent_s, has_left)


def own(host, *feeds, age_s=600.0):
    return {feed: OwnRun(f"{host} {feed}", age_s) for feed in feeds}


def decided(host, running, hosts, runs=(), *, feeds=FEEDS, assigned_s=30.0, answering_s=0.0, was_away=False):
    seconds = {"assigned_s": assigned_s, "answering_s": answering_s}
    return changes(host, running, assigned(feeds, [*hosts, host]), runs, **seconds, was_away=was_away)


@given(st.integers(1, 64), st.sets(st.text("abc-9", min_size=1, max_size=6), min_size=1, max_size=12))
def test_each_feed_has_two_hosts_and_no_host_two_feeds_more_than_another(count, hosts):
    feeds = [f"feed-{nth}" for nth in range(count)]

    of_feed = assigned(feeds, hosts)

    assert list(of_feed) == feeds
    assert {len(names) for names in of_feed.values()} == {min(2, len(hosts))}
    assert all(len(set(names)) == len(names) for names in of_feed.values())
    held = Counter(name for names in of_feed.values() for name in names)
    assert set(held) <= hosts
    assert max(held.values()) - min(held[name] for name in hosts) <= 1
    assert of_feed == assigned(feeds, sorted(hosts, reverse=True))


def test_a_host_starts_what_falls_to_it():
    assert decided("a", {}, []) == (FEEDS, {}, {}, {})
    assert decided("a", own("a", FEEDS[0]), ["b", "c"]).start == FEEDS[1:2]  # 1of2: a, b; 2of2: c, a; settlement: b, c


@pytest.mark.parametrize(
    ("assigned_s", "runs", "was_away", "starts"),
    [
        (3, [], False, []),  # all hosts may have just started
        (4, [], False, ["settlement"]),
        (3, [lease("settlement", "b")], False, []),
        (4, [lease("settlement", "b")], False, ["settlement"]),  # a single run, whose loss would lose data
        (14, [lease("settlement", "b")], True, []),  # not every host is back after an outage of the database
        (15, [lease("settlement", "b")], True, ["settlement"]),
        (4, [], True, ["settlement"]),
        (14, [lease("settlement", "b"), lease("settlement", "c")], False, []),
        (15, [lease("settlement", "b"), lease("settlement", "c")], False, ["settlement"]),
        (4, [lease("settlement", "b"), lease("settlement", "c", silent_s=11)], False, ["settlement"]),
        (4, [lease("settlement", "b"), lease("settlement", "c", has_left=True)], False, ["settlement"]),
    ],
)
def test_a_host_starts_what_others_run_only_once_it_is_sure_that_it_is_to(assigned_s, runs, was_away, starts):
    given = {"feeds": ["settlement"], "assigned_s": assigned_s, "was_away": was_away}

    assert decided("a", {}, [], runs, **given).start == starts


@pytest.mark.parametrize(("answering_s", "starts"), [(29, []), (30, ["settlement"])])
def test_half_a_minute_after_an_outage_of_the_database_a_missing_run_is_started_at_once_again(answering_s, starts):
    given = {"feeds": ["settlement"], "assigned_s": 4, "answering_s": answering_s, "was_away": True}

    assert decided("a", {}, [], [lease("settlement", "b")], **given).start == starts


def test_what_falls_to_others_is_stopped_once_each_of_them_could_lead():
    running, hosts = own("a", *FEEDS), ["a", "b", "c"]
    others = [lease("settlement", "b"), lease("settlement", "c")]

    assert decided("a", running, hosts, others).stop == {"settlement": "a settlement"}
    for missing in ([], others[:1], [others[0], lease("settlement", "c", silent_s=11)]):
        assert decided("a", running, hosts, missing).stop == {}
    assert decided("a", running, hosts, [others[0], lease("settlement", "c", ready=False)]) == ([], {}, {}, {})


def test_nothing_is_stopped_while_the_hosts_are_still_changing():
    others = [lease("settlement", "b"), lease("settlement", "c")]

    assert decided("a", own("a", *FEEDS), ["b", "c"], others, assigned_s=29).stop == {}


def test_runs_of_another_number_of_shards_end_by_themselves_and_are_not_started_again():
    found = decided("a", own("a", "polymarket"), ["b"])

    assert found == (FEEDS, {}, {"polymarket": "a polymarket"}, {})


@pytest.mark.parametrize(
    ("runs", "answering_s", "age_s", "kills"),
    [
        ([lease("settlement", "a", silent_s=61)], 61, 600, True),
        ([lease("settlement", "a", silent_s=61)], 60, 600, False),  # nobody could renew it while the database was away
        ([lease("settlement", "a", silent_s=59)], 600, 600, False),
        ([lease("settlement", "a", silent_s=61, ready=False)], 61, 600, True),  # it has left, and its process has not
        ([lease("settlement", "a", run_id="its predecessor", silent_s=600)], 600, 179, False),
        ([lease("settlement", "a", run_id="its predecessor", silent_s=0)], 600, 181, True),
        ([], 600, 181, True),
        ([], 60, 181, False),
    ],
)
def test_a_run_that_hangs_is_ended(runs, answering_s, age_s, kills):
    found = decided("a", own("a", "settlement", age_s=age_s), [], runs, feeds=["settlement"], answering_s=answering_s)

    assert found.kill == ({"settlement": "a settlement"} if kills else {})
