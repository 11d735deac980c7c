"""Stops each stage of a running service: it turns late, then stale, everywhere its status is shown."""

from __future__ import annotations

import os
import signal
import threading
import time
import urllib.request
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from cli.stack.ports import choose
from cli.stack.readiness import fetch
from config import tunables
from orchestration.assets.pipeline import STAGES
from orchestration.assets.stages import REPORT_WINDOW_S
from tests.soak.running import RunningDemo

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

# Shorter than the defaults, so that the test can wait for all; each is longer than its stage's own interval.
SHORT = {
    "ingestion": (15, 60),
    "settlement": (30, 75),
    "delivery": (30, 75),
    "discovery": (60, 90),
    "aggregates": (180, 210),
    "analysis": (180, 210),
}
SENSOR_OF = {
    "discovery": "discovery_due",
    "ingestion": "live_keeper",
    "settlement": "settlement_keeper",
    "analysis": "analysis_due",
    "aggregates": "aggregates_due",
    "delivery": "delivery_keeper",
}
FEEDS = {"ingestion": "polymarket", "settlement": "settlement", "delivery": "delivery"}
TIMEOUT_S = 600.0  # for what takes a minute on an idle machine
SENSOR_INTERVAL_S = 40.0  # Dagster evaluates sensors every ten seconds or so, later on a busy machine
METRICS_INTERVAL_S = 10.0  # each worker re-queries the database after a moment
POLICY_INTERVAL_S = REPORT_WINDOW_S + 60.0  # freshness is evaluated each half minute

SENSORS = """query($at: RepositorySelector!) { sensorsOrError(repositorySelector: $at) {
    ... on Sensors { results { name sensorState { id } } } } }"""
STOP = "mutation($id: String!) { stopSensor(id: $id) { __typename ... on PythonError { message } } }"
START = """mutation($sensor: SensorSelector!) { startSensor(sensorSelector: $sensor) {
    __typename ... on PythonError { message } } }"""
FRESHNESS = """query($keys: [AssetKeyInput!]) { assetNodes(assetKeys: $keys) {
    assetKey { path } freshnessStatusInfo { freshnessStatus } } }"""
CHECK = """query($key: AssetKeyInput!, $name: String!) {
    assetCheckExecutions(assetKey: $key, checkName: $name, limit: 1) { status evaluation { severity } } }"""
REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": "presage"}


class Service(RunningDemo):
    """A demo whose stages can be stopped and inspected."""

    @contextmanager
    def stopped(self, stage: str) -> Iterator[None]:
        """Stop the sensor that starts a stage's runs, and end those of its feed."""
        sensors = self.graphql(SENSORS, at=REPOSITORY)["sensorsOrError"]["results"]
        (sensor,) = [each for each in sensors if each["name"] == SENSOR_OF[stage]]
        assert self.graphql(STOP, id=sensor["sensorState"]["id"])["stopSensor"]["__typename"] != "PythonError"
        try:
            with self.killed(*(FEEDS[each] for each in FEEDS if each == stage)):
                yield
        finally:
            answer = self.graphql(START, sensor={**REPOSITORY, "sensorName": SENSOR_OF[stage]})["startSensor"]
        assert answer["__typename"] == "Sensor", answer

    @contextmanager
    def killed(self, *feeds: str) -> Iterator[None]:
        """Kill every run of some feeds, including requested ones that start only now."""
        over = threading.Event()

        def kill() -> None:
            with self.connect() as conn:
                while not over.wait(0.2):
                    rows = conn.execute(
                        "select pid from feed_leases"
                        " where feed = any(%s) and role <> 'gone' and beat_at > now() - interval '5 s'",
                        [list(feeds)],
                    )
                    for (pid,) in rows:
                        with suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            yield
        finally:
            over.set()
            killer.join()

    def shown(self, stage: str, places: Collection[str]) -> dict[str, Any]:
        """Return a stage's status in the API, all other stages that are not fresh, and its status in other places."""
        api = self.output_json()["urls"]["api"]
        answer = fetch(f"{api}/v1/status/pipeline", key=self.output_json()["api_key"]) or {"stages": []}
        stages = {each["stage"]: each for each in answer["stages"]}
        seen = {
            "answer": stages[stage]["status"] if stages else "none",
            "lag_s": stages[stage]["lag_s"] if stages else None,
            "others": " ".join(
                f"{name}:{each['status']}"
                for name, each in stages.items()
                if each["status"] != "fresh" and name != stage
            ),
        }
        elsewhere = {"metrics": self._metric, "check": self._check, "policy": self._policy}
        return seen | {place: read(stage) for place, read in elsewhere.items() if place in places}

    def _metric(self, stage: str) -> str:
        with urllib.request.urlopen(f"{self.output_json()['urls']['api']}/metrics", timeout=10) as response:
            families = {one.name: one for one in text_string_to_metric_families(response.read().decode())}
        states = [
            sample.labels["status"]
            for sample in families["presage_stage_status"].samples
            if sample.labels["stage"] == stage and sample.value
        ]
        return states[0] if states else "none"

    def _check(self, stage: str) -> str:
        return _word(
            self.graphql(CHECK, key={"path": STAGES[stage].path}, name=f"{stage}_fresh")["assetCheckExecutions"]
        )

    def _policy(self, stage: str) -> str:
        nodes = self.graphql(FRESHNESS, keys=[{"path": ["stage", stage]}])["assetNodes"]
        known = (nodes[0]["freshnessStatusInfo"] if nodes else None) or {}
        return str(known.get("freshnessStatus", "none"))


def _word(executions: list[dict[str, Any]]) -> str:
    if not executions or executions[0]["status"] not in {"SUCCEEDED", "FAILED"}:
        return "under way"
    if executions[0]["status"] == "SUCCEEDED":
        return "fresh"
    return {"WARN": "late", "ERROR": "stale"}[executions[0]["evaluation"]["severity"]]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    data = tmp_path_factory.mktemp("stages")
    data.chmod(0o755)
    running = Service(
        data,
        *("--port-base", str(choose(None).api), "--rate", "60", "--markets", "25"),
        PRESAGE_DISCOVERY_CHANGES_S="10",
    )
    try:
        running.wait_until(lambda: running.output_json().get("api_key"), 300)
        running.wait_until(lambda: _reached(running), 120)
        with running.connect() as conn:
            conn.execute(
                "insert into webhooks (account_id, url, events, secret, since_seq) select account_id,"
                " 'https://receiver.example/', '{market.resolved}', 'whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw', 0"
                " from accounts limit 1"
            )
            for stage, (warn, fail) in SHORT.items():
                tunables.set_(conn, f"{stage}_warn_after_s", str(warn))
                tunables.set_(conn, f"{stage}_fail_after_s", str(fail))
        yield running
    finally:
        running.stop()
        running.erase()


def _reached(running: Service) -> bool:
    try:
        with running.connect():
            return running.graphql("{ version }") is not None
    except (psycopg.Error, OSError, KeyError):
        return False


def wait(service: Service, stage: str, within_s: float, **expected: str) -> tuple[float, dict[str, Any]]:
    """Wait until places show the expected status; return the seconds it took, and what they showed."""
    began, seen = time.monotonic(), {}
    while time.monotonic() - began < within_s:
        seen = service.shown(stage, expected)
        if all(seen[place] == word for place, word in expected.items()):
            return time.monotonic() - began, seen
        time.sleep(1)
    raise AssertionError(f"{stage}: {expected} not within {within_s} s, but {seen}")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stage", SHORT)
def test_a_stopped_stage_turns_late_then_stale_everywhere_and_recovers_by_itself(service, stage):
    warn, fail = SHORT[stage]
    wait(service, stage, TIMEOUT_S, answer="fresh", metrics="fresh", check="fresh", policy="HEALTHY")
    with service.stopped(stage):
        _, late = wait(service, stage, warn + 150, answer="late")  # a run in progress may still succeed
        assert warn < late["lag_s"] < warn + 5
        assert "stale" not in late["others"], late
        wait(service, stage, METRICS_INTERVAL_S, metrics="late")
        check_late, _ = wait(service, stage, SENSOR_INTERVAL_S, check="late")
        policy_late = policy_stale = None
        _, stale = wait(service, stage, fail - warn + 10, answer="stale")
        assert fail < stale["lag_s"] < fail + 5
        wait(service, stage, METRICS_INTERVAL_S, metrics="stale")
        check_stale, _ = wait(service, stage, SENSOR_INTERVAL_S, check="stale")
        if (default := tunables.THRESHOLDS[stage])[1] - default[0] <= 90:
            policy_stale, _ = wait(service, stage, POLICY_INTERVAL_S + default[1] - default[0], policy="DEGRADED")
        else:  # its policy fails only after a quarter of an hour or more: only the warning is checked
            policy_late, _ = wait(service, stage, POLICY_INTERVAL_S, policy="WARNING")

    fresh, _ = wait(service, stage, TIMEOUT_S, answer="fresh", metrics="fresh", check="fresh", policy="HEALTHY")
    figures = (late["lag_s"], check_late, policy_late, stale["lag_s"], check_stale, policy_stale, fresh)
    names = ("late at", "check", "policy", "stale at", "check", "policy", "fresh after")
    report = (f"{name} {each:.1f}" for name, each in zip(names, figures, strict=True) if each is not None)
    Console(width=150).print(f"{stage} (s):", ", ".join(report))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_total_stall_turns_red(service):
    wait(service, "aggregates", TIMEOUT_S, answer="fresh", others="")
    pids = [service.pid(name) for name in ("code-server", "daemon")]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)  # it hangs: nothing restarts it
    try:
        with service.killed(*FEEDS.values()):
            wait(service, "ingestion", 100, answer="stale", metrics="stale")
            _, seen = wait(service, "aggregates", 400, answer="stale", metrics="stale")
        assert {word.split(":")[1] for word in seen["others"].split()} <= {"late", "stale"}
        assert len(seen["others"].split()) == len(SHORT) - 1
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    wait(service, "aggregates", TIMEOUT_S, answer="fresh", metrics="fresh", check="fresh", others="")
