import pytest

from orchestration.ingest import figures
from orchestration.ingest.figures import BEHIND_MS, MIN_ROWS
from orchestration.ingest.storage.rows import WriteBatch
from tests.orchestration.ingest.builders import trades
from tests.orchestration.ingest.test_session import make_session

SEEN_S = 1_790_000_000


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(figures, "time", lambda: SEEN_S + 0.5)
    session = make_session()
    session.committer.role = "leader"
    return session


def pass_interval(session, *lags_ms, rows_each=MIN_ROWS):
    """Let rows be committed with these lags, and an interval of figures end; return what hinders the run."""
    session.committer.lag.add(100_000, [100_000 - lag_ms for lag_ms in lags_ms] * rows_each)
    session.figures.stats()
    return session.figures.obstacle()


def test_a_leader_is_behind_while_most_of_what_it_commits_is_late(session, monkeypatch):
    assert pass_interval(session, BEHIND_MS * 0.9) == {}
    assert pass_interval(session, 200, 7_000) == {}  # half of it
    assert pass_interval(session, 7_000, rows_each=MIN_ROWS - 1) == {}  # of a shard where hardly anything happens

    behind = {"reason": "7 s behind, at 0 messages a second", "since": SEEN_S, "behind_s": 7}
    assert pass_interval(session, 200, 7_000, 7_000) == behind
    monkeypatch.setattr(figures, "time", lambda: SEEN_S + 60)
    monkeypatch.setattr(session.receiver, "rate", lambda: 12_345.6)
    assert pass_interval(session, 8_900) == {
        "reason": "9 s behind, at 12,346 messages a second",
        "since": SEEN_S,
        "behind_s": 9,
    }

    assert pass_interval(session, 200) == {}


def test_what_explains_why_a_run_is_behind_is_said_instead(session, monkeypatch):
    assert pass_interval(session, 7_000)

    detail = session._detail(0.0)
    assert (detail["reason"], "behind_s" in detail) == ("follows no market", False)
    monkeypatch.setattr(session.receiver, "obstacle", dict)
    detail = session._detail(0.0)
    assert (detail["reason"], detail["behind_s"]) == ("7 s behind, at 0 messages a second", 7)


@pytest.mark.parametrize(("waits", "behind"), [(True, True), (False, False)])
def test_an_interval_without_a_commit_changes_nothing_while_something_waits(session, waits, behind):
    assert pass_interval(session, 7_000)
    if waits:
        session.backlog.add(WriteBatch(trades=trades(1)))

    assert bool(pass_interval(session)) is behind


def test_a_run_that_does_not_lead_is_not_behind(session):
    assert pass_interval(session, 7_000)

    session.committer.role = "standby"
    assert session.figures.obstacle() == {}
    session.committer.role = "leader"
    assert session.figures.obstacle() == {}
