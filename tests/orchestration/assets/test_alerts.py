"""Alerts: failures are reported once, in time, and in few messages."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise

import dagster as dg
import pytest

from config import settings
from orchestration.alerts.outbox import Outbox, message
from orchestration.alerts.receivers import receivers
from orchestration.alerts.standing import RECOVERY_S, AlertState, FailedRun, FailingCheck, Note
from orchestration.assets import alerts as defs

HOUR = 3600.0
STALE = FailingCheck("error", "stale: 90.0 s behind")
LATE = FailingCheck("warn", "late: 20.0 s behind")


class Life:
    """An alert state over simulated time; `told` has the alerts, and when they came."""

    def __init__(self):
        self.standing, self.now, self.told = AlertState(), 0.0, []

    def update_checks(self, failing, *, seconds=15.0, unknown=()):
        for _ in range(max(1, int(seconds // 15))):
            notes = self.standing.update_checks(failing, unknown, self.now, repeat_s=4 * HOUR)
            self.told += [(self.now, note.kind, note.severity) for note in notes]
            self.now += 15
        return self


def test_an_error_is_told_after_a_minute_and_again_after_hours_and_when_it_is_over():
    life = Life().update_checks({"check": STALE}, seconds=5 * HOUR).update_checks({}, seconds=600)

    assert life.told == [
        (60, "problem", "error"),
        (4 * HOUR + 60, "still", "error"),
        (5 * HOUR + RECOVERY_S, "over", "error"),
    ]
    assert life.standing.checks == {}


def test_a_warning_is_told_when_it_lasts():
    short = Life().update_checks({"check": LATE}, seconds=105).update_checks({}, seconds=600)
    longer = Life().update_checks({"check": LATE}, seconds=150)

    assert short.told == []
    assert longer.told == [(120, "problem", "warn")]


def test_what_gets_worse_is_told_at_once():
    life = Life().update_checks({"check": LATE}, seconds=300).update_checks({"check": STALE}, seconds=300)

    assert life.told == [(120, "problem", "warn"), (300, "problem", "error")]


def test_what_comes_and_goes_is_told_once():
    life = Life()
    for _ in range(50):
        life.update_checks({"check": STALE}, seconds=120).update_checks({}, seconds=60)
    life.update_checks({}, seconds=600)

    assert [kind for _, kind, _ in life.told] == ["problem", "over"]


def test_a_check_under_way_says_neither_that_it_fails_nor_that_it_is_well():
    life = Life().update_checks({"check": STALE}, seconds=90).update_checks({}, unknown={"check"}, seconds=HOUR)

    assert [kind for _, kind, _ in life.told] == ["problem"]
    assert "check" in life.standing.checks


def test_a_job_that_fails_again_and_again_is_counted():
    standing, told = AlertState(), []
    for minute in range(190):
        failures = [FailedRun("analysis", f"run-{minute:04}", "boom")] if minute < 120 else []
        told += [
            (minute, note.kind, note.said) for note in standing.add_failed_runs(failures, minute * 60.0, repeat_s=HOUR)
        ]

    assert told == [
        (0, "problem", "run run-0000 failed: boom"),
        (60, "still", "60 more runs failed; the last: run run-0060 failed: boom"),
        (120, "still", "59 more runs failed; the last: run run-0119 failed: boom"),
    ]
    assert standing.jobs == {}


def note(key, kind="problem", severity="error", said="it is bad"):
    return Note(key, kind, severity, said, 1_700_000_000.0)


def test_a_storm_is_few_messages():
    outbox, sent = Outbox(), []
    for second in range(1000, 1600, 15):
        outbox.put([note(f"check {second} {number}") for number in range(10)])
        if found := outbox.due(float(second + 1), pause_s=60):
            outbox.sent(float(second + 1))
            sent.append(len(found.notes))

    assert sent == [10] + [40] * 9
    assert len(outbox.pending) == 30


def test_what_is_over_before_it_was_told_is_not_told():
    outbox = Outbox()
    outbox.put([note("a"), note("b")])
    outbox.put([note("a", "over"), note("b", "still")])

    assert [(each.key, each.kind) for each in outbox.due(1e9, pause_s=60).notes] == [("b", "problem")]


def test_a_message_that_is_refused_is_tried_again_less_and_less_often():
    outbox, tried, now = Outbox(), [], 0.0
    outbox.put([note("a")])
    while now < 3 * HOUR:
        if outbox.due(now, pause_s=60):
            tried.append(now)
            outbox.failed(now)
        now += 15

    pauses = [after - before for before, after in pairwise(tried)]
    assert pauses[:6] == [30, 60, 120, 240, 480, 900]
    assert set(pauses[6:]) == {900}


def test_a_message_has_the_worst_first_and_is_bounded():
    told = message([note("z", severity="warn"), note("b", "over"), *(note(f"c{i:02}") for i in range(30))])

    lines = told.text.splitlines()
    assert told.title == "Presage: 31 new problems, 1 over"
    assert lines[0] == "ERROR c00: it is bad (since 2023-11-14 22:13:20 UTC)"
    assert len(lines) == 21
    assert lines[-1] == "and 12 more"


class Receiver(ThreadingHTTPServer):
    """A receiver of alerts on a real port."""

    def __init__(self):
        self.status, self.got = 200, []
        super().__init__(("127.0.0.1", 0), Answering)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class Answering(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.got.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    with Receiver() as server:
        yield server
        server.shutdown()


def test_a_webhook_gets_what_people_and_what_programs_read(receiver):
    ways = receivers(settings.Settings(alert_webhook_url=f"http://127.0.0.1:{receiver.server_port}/hook/secret"))

    accepted = ways["webhook"](message([note("check lag of trades", severity="warn", said="p99 1200 ms")]))

    ((path, body),) = receiver.got
    assert accepted
    assert path == "/hook/secret"
    assert body["text"].splitlines() == [
        "Presage: 1 new problem",
        "WARN check lag of trades: p99 1200 ms (since 2023-11-14 22:13:20 UTC)",
    ]
    assert body["alerts"] == [
        {
            "key": "check lag of trades",
            "kind": "problem",
            "severity": "warn",
            "said": "p99 1200 ms",
            "since": 1_700_000_000.0,
        }
    ]


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")
def test_apprise_takes_the_same_message_to_each_of_its_addresses(receiver):
    address = f"json://127.0.0.1:{receiver.server_port}"
    ways = receivers(settings.Settings(alert_apprise_urls=f"{address}/one {address}/two"))

    accepted = [send(message([note("check lag of trades")])) for send in ways.values()]

    assert list(ways) == ["apprise 1", "apprise 2"]
    assert accepted == [True, True]
    assert [path.strip("/") for path, _ in receiver.got] == ["one", "two"]
    assert {body["title"] for _, body in receiver.got} == {"Presage: 1 new problem"}


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")
@pytest.mark.parametrize("address", ["nonsense", "json://127.0.0.1:9/", "bogus://a-secret@h/", "slack://a-secret"])
def test_a_receiver_that_is_not_there_has_not_accepted_and_its_address_stays_secret(address, caplog):
    told = message([note("check")])
    web = receivers(settings.Settings(alert_webhook_url="http://127.0.0.1:9/a-secret"))["webhook"]
    (other,) = receivers(settings.Settings(alert_apprise_urls=address)).values()

    assert (web(told), other(told)) == (False, False)
    assert "a-secret" not in caplog.text


@dg.asset
def fruit():
    return dg.MaterializeResult()


@dg.asset_check(asset=fruit)
def ripe():
    return dg.AssetCheckResult(passed=True)


@dg.op
def broken():
    raise RuntimeError("no such table: fruit")


@dg.job
def breaks():
    broken()


def evaluation(passed, severity=dg.AssetCheckSeverity.ERROR, said="green as grass"):
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey("fruit"),
        check_name="ripe",
        passed=passed,
        severity=severity,
        description=said,
        metadata={},
    )


@pytest.fixture
def instance(instance):
    """A Dagster instance without failures."""
    instance.report_runless_asset_event(evaluation(passed=True))
    return instance


class Watch:
    """The sensor, evaluated repeatedly, with time passing in between."""

    def __init__(self, instance, monkeypatch, **given):
        self.cursor, self.now, self.said = None, 1_900_000_000.0, ""
        self.instance = instance
        self.repository = dg.Definitions([fruit], asset_checks=[ripe], jobs=[breaks]).get_repository_def()
        monkeypatch.setattr(settings, "get", lambda: settings.Settings(**given))

    def look(self, monkeypatch, *, later_s=60.0):
        self.now += later_s
        watch = self

        class Clock(defs.datetime):
            @classmethod
            def now(cls, tz=None):
                return defs.datetime.fromtimestamp(watch.now, tz)

        with monkeypatch.context() as patched:
            patched.setattr(defs, "datetime", Clock)
            context = dg.build_sensor_context(
                instance=self.instance, cursor=self.cursor, repository_def=self.repository
            )
            result = defs.alerts(context)
        self.cursor, self.said = result.cursor or self.cursor, str(result.skip_reason)


def test_failing_checks_and_failed_runs_reach_the_webhook(instance, receiver, monkeypatch):
    url = f"http://127.0.0.1:{receiver.server_port}/"
    watch = Watch(instance, monkeypatch, alert_webhook_url=url)
    watch.look(monkeypatch)
    assert receiver.got == []

    instance.report_runless_asset_event(evaluation(passed=False))
    known = json.loads(watch.cursor)
    watch.cursor = json.dumps(known | {"runs_until": 0.0})  # the instance's clock is the real one
    run = breaks.execute_in_process(instance=instance, raise_on_error=False)
    for _ in range(3):
        watch.look(monkeypatch)

    assert [body["title"] for _, body in receiver.got] == ["Presage: 1 new problem"] * 2
    alerts = [each for _, body in receiver.got for each in body["alerts"]]
    assert {each["key"]: each["said"] for each in alerts} == {
        "check ripe of fruit": "green as grass",
        "job breaks": f"run {run.run_id[:8]} failed: RuntimeError: no such table: fruit",
    }

    instance.report_runless_asset_event(evaluation(passed=True))
    watch.look(monkeypatch)
    watch.look(monkeypatch, later_s=RECOVERY_S)
    assert [each["kind"] for each in receiver.got[-1][1]["alerts"]] == ["over"]


def test_a_receiver_that_was_away_is_told_when_it_is_back(instance, receiver, monkeypatch):
    watch = Watch(instance, monkeypatch, alert_webhook_url=f"http://127.0.0.1:{receiver.server_port}/")
    receiver.status = 503
    instance.report_runless_asset_event(evaluation(passed=False))
    watch.look(monkeypatch)
    watch.look(monkeypatch)
    watch.look(monkeypatch, later_s=15)
    assert len(receiver.got) == 1
    assert "1 to send" in watch.said

    receiver.status = 204
    watch.look(monkeypatch, later_s=60)
    watch.look(monkeypatch, later_s=60)

    assert [body["title"] for _, body in receiver.got] == ["Presage: 1 new problem"] * 2
    assert "0 to send" in watch.said


def test_warnings_are_left_out_where_errors_alone_are_asked_for(instance, receiver, monkeypatch):
    watch = Watch(
        instance, monkeypatch, alert_webhook_url=f"http://127.0.0.1:{receiver.server_port}/", alert_on="error"
    )
    instance.report_runless_asset_event(evaluation(passed=False, severity=dg.AssetCheckSeverity.WARN))
    for _ in range(5):
        watch.look(monkeypatch)

    assert receiver.got == []


def test_where_errors_alone_are_asked_for_one_that_becomes_a_warning_is_not_over(instance, receiver, monkeypatch):
    watch = Watch(
        instance, monkeypatch, alert_webhook_url=f"http://127.0.0.1:{receiver.server_port}/", alert_on="error"
    )

    def judged(*given, **more):
        instance.report_runless_asset_event(evaluation(*given, **more))
        for _ in range(8):
            watch.look(monkeypatch)
        return [each["kind"] for _, body in receiver.got for each in body["alerts"]]

    assert judged(passed=False) == ["problem"]
    assert judged(passed=False, severity=dg.AssetCheckSeverity.WARN) == ["problem"]
    assert judged(passed=True) == ["problem", "over"]


def test_a_receiver_that_breaks_keeps_nothing_from_the_others(instance, receiver, monkeypatch, caplog):
    watch = Watch(instance, monkeypatch, alert_webhook_url=f"http://host/a-secret/{'too long' * 10_000}")
    working = receivers(settings.Settings(alert_webhook_url=f"http://127.0.0.1:{receiver.server_port}/"))["webhook"]
    monkeypatch.setattr(defs, "receivers", lambda given: {**receivers(given), "other": working})
    instance.report_runless_asset_event(evaluation(passed=False))
    for _ in range(4):
        watch.look(monkeypatch)

    assert [body["title"] for _, body in receiver.got] == ["Presage: 1 new problem"]
    assert "1 to send" in watch.said
    assert "alerts cannot be sent to webhook: InvalidURL" in caplog.text
    assert "a-secret" not in caplog.text


def test_with_nobody_to_tell_nothing_is_looked_at(monkeypatch):
    monkeypatch.setattr(settings, "get", settings.Settings)
    with dg.DagsterInstance.ephemeral() as instance:
        watch = Watch(instance, monkeypatch)
        watch.look(monkeypatch)

    assert "no receivers" in watch.said
