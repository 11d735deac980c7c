"""Each stage of a running service is stopped by hand: it turns late, then stale, wherever that is shown."""

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
from config import tunables as parameters
from orchestration.assets.pipeline import STAGES
from orchestration.assets.stages import UNTOLD_S
from tests.soak.running import Running

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

# Shorter than by default, so that all of them can be waited for; each is longer than its stage's own pace.
SHORT = {
    "ingestion": (15, 60),
    "settlement": (30, 75),
    "delivery": (30, 75),
    "discovery": (60, 90),
    "aggregates": (180, 210),
    "analysis": (180, 210),
}
KEPT_BY = {
    "discovery": "discovery_due",
    "ingestion": "live_keeper",
    "settlement": "settlement_keeper",
    "analysis": "analysis_due",
    "aggregates": "aggregates_due",
    "delivery": "delivery_keeper",
}
FEEDS = {"ingestion": "polymarket", "settlement": "settlement", "delivery": "delivery"}
PATIENCE_S = 600.0  # for what takes a minute when nothing else runs
SENSOR_LOOKS_S = 40.0  # Dagster's sensors are asked each ten seconds or so, on a busy machine later
METRICS_LOOK_S = 10.0  # each worker asks the database anew after a moment
POLICY_LOOKS_S = UNTOLD_S + 60.0  # and its freshness is judged each half minute

SENSORS = """query($at: RepositorySelector!) { sensorsOrError(repositorySelector: $at) {
    ... on Sensors { results { name sensorState { id } } } } }"""
STOP = "mutation($id: String!) { stopSensor(id: $id) { __typename ... on PythonError { message } } }"
START = """mutation($sensor: SensorSelector!) { startSensor(sensorSelector: $sensor) {
    __typename ... on PythonError { message } } }"""
FRESHNESS = """query($keys: [AssetKeyInput!]) { assetNodes(assetKeys: $keys) {
    assetKey { path } freshnessStatusInfo { freshnessStatus } } }"""
CHECK = """query($key: AssetKeyInput!, $name: String!) {
    assetCheckExecutions(assetKey: $key, checkName: $name, limit: 1) { status evaluation { severity } } }"""
PLACE = {"repositoryName": "__repository__", "repositoryLocationName": "presage"}


class Service(Running):
    """A demo whose stages can be stopped and looked at."""

    @contextmanager
    def stopped(self, stage: str) -> Iterator[None]:
        """Nothing starts a stage's runs, and those of its feed end."""
        sensors = self.graphql(SENSORS, at=PLACE)["sensorsOrError"]["results"]
        (sensor,) = [each for each in sensors if each["name"] == KEPT_BY[stage]]
        assert self.graphql(STOP, id=sensor["sensorState"]["id"])["stopSensor"]["__typename"] != "PythonError"
        try:
            with self.killed(*(FEEDS[each] for each in FEEDS if each == stage)):
                yield
        finally:
            answer = self.graphql(START, sensor={**PLACE, "sensorName": KEPT_BY[stage]})["startSensor"]
        assert answer["__typename"] == "Sensor", answer

    @contextmanager
    def killed(self, *feeds: str) -> Iterator[None]:
        """Every run of some feeds is ended, those too that were asked for before and begin only now."""
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
        """What the API says of a stage and of all others that are not fresh, and what some other places say of it."""
        api = self.told()["urls"]["api"]
        answer = fetch(f"{api}/v1/status/pipeline", key=self.told()["api_key"]) or {"stages": []}
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
        return seen | {place: tell(stage) for place, tell in elsewhere.items() if place in places}

    def _metric(self, stage: str) -> str:
        with urllib.request.urlopen(f"{self.told()['urls']['api']}/metrics", timeout=10) as told:
            families = {one.name: one for one in text_string_to_metric_families(told.read().decode())}
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
        running.wait_until(lambda: running.told().get("api_key"), 300)
        running.wait_until(lambda: _reached(running), 120)
        with running.connect() as conn:
            conn.execute(
                "insert into webhooks (account_id, url, events, secret, since_seq) select account_id,"
                " 'https://receiver.example/', '{market.resolved}', 'whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw', 0"
                " from accounts limit 1"
            )
            for stage, (warn, fail) in SHORT.items():
                parameters.set_(conn, f"{stage}_warn_after_s", str(warn))
                parameters.set_(conn, f"{stage}_fail_after_s", str(fail))
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
    """Wait until places say what is expected; say how long it took, and what was seen then."""
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
    wait(service, stage, PATIENCE_S, answer="fresh", metrics="fresh", check="fresh", policy="HEALTHY")
    with service.stopped(stage):
        _, late = wait(service, stage, warn + 150, answer="late")  # a run under way may end well
        assert warn < late["lag_s"] < warn + 5
        assert "stale" not in late["others"], late
        wait(service, stage, METRICS_LOOK_S, metrics="late")
        check_late, _ = wait(service, stage, SENSOR_LOOKS_S, check="late")
        policy_late = policy_stale = None
        _, stale = wait(service, stage, fail - warn + 10, answer="stale")
        assert fail < stale["lag_s"] < fail + 5
        wait(service, stage, METRICS_LOOK_S, metrics="stale")
        check_stale, _ = wait(service, stage, SENSOR_LOOKS_S, check="stale")
        if (default := parameters.THRESHOLDS[stage])[1] - default[0] <= 90:
            policy_stale, _ = wait(service, stage, POLICY_LOOKS_S + default[1] - default[0], policy="DEGRADED")
        else:  # its policy fails after a quarter of an hour and more; that it warns is seen here
            policy_late, _ = wait(service, stage, POLICY_LOOKS_S, policy="WARNING")

    fresh, _ = wait(service, stage, PATIENCE_S, answer="fresh", metrics="fresh", check="fresh", policy="HEALTHY")
    figures = (late["lag_s"], check_late, policy_late, stale["lag_s"], check_stale, policy_stale, fresh)
    names = ("late at", "check", "policy", "stale at", "check", "policy", "fresh after")
    told = (f"{name} {each:.1f}" for name, each in zip(names, figures, strict=True) if each is not None)
    Console(width=150).print(f"{stage} (s):", ", ".join(told))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_total_stall_turns_red(service):
    wait(service, "aggregates", PATIENCE_S, answer="fresh", others="")
    pids = [service.pid(name) for name in ("code-server", "daemon")]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)  # it hangs: nobody starts it again
    try:
        with service.killed(*FEEDS.values()):
            wait(service, "ingestion", 100, answer="stale", metrics="stale")
            _, seen = wait(service, "aggregates", 400, answer="stale", metrics="stale")
        assert {word.split(":")[1] for word in seen["others"].split()} <= {"late", "stale"}
        assert len(seen["others"].split()) == len(SHORT) - 1
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    wait(service, "aggregates", PATIENCE_S, answer="fresh", metrics="fresh", check="fresh", others="")
