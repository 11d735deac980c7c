"""The dashboard and the alert rules use only metrics and labels that the service exports."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from falcon import testing
from prometheus_client.parser import text_string_to_metric_families

from api.app import create_app
from tests.api.conftest import OneConnection, generous
from tests.debian_programs import debian_program

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "operations"
RULES = yaml.safe_load((FOLDER / "prometheus-rules.yml").read_text())["groups"]
DASHBOARD = json.loads((FOLDER / "grafana-dashboard.json").read_text())
GIVEN = {
    "up": set(),  # by Prometheus itself
    "presage_database_replica_lag_seconds": set(),  # on a replica: tests/api/metrics/test_database_metrics.py has one
}
SCRAPED = {"job", "instance"}  # labels that Prometheus adds
FUNCTIONS = {"rate", "increase", "histogram_quantile", "predict_linear", "time"}
AGGREGATIONS = {"sum", "max", "min", "count", "topk"}
WORDS = {"by", "on", "and", "or", "unless"} | FUNCTIONS | AGGREGATIONS
TOKEN = re.compile(
    r"""\s*(?:(?P<name>[a-z_:][a-z0-9_:]*)|(?P<number>\d+(?:\.\d+)?)|(?P<labels>\{[^{}]*\})|(?P<range>\[(?:\d+[smhd]|\$__rate_interval)\])
    |(?P<operator>==|!=|<=|>=|[-+*/<>])|(?P<open>\()|(?P<close>\))|(?P<comma>,))""",
    re.VERBOSE,
)
MATCHER = re.compile(r'\s*(?P<label>[a-z_]+)\s*(?:=|!=|=~|!~)\s*"(?P<value>[^"]*)"\s*')


def expressions():
    """Return every expression, by its location."""
    for group in RULES:
        for rule in group["rules"]:
            yield rule.get("alert") or rule["record"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield f"{panel['title']} {target['refId']}", target["expr"]


ALL = list(expressions())


@pytest.fixture(scope="module")
def metrics(new_database):
    """Return each series that the service exports, with its labels, and those that the rules record."""
    from api.metering.ledger_location import LazyLedger
    from api.service import Service
    from api.stream.hub import StreamHub
    from sql import database

    with new_database() as url, database.connect(url, autocommit=True) as conn:
        pool, ledger = OneConnection(conn), LazyLedger()
        client = testing.TestClient(
            create_app(
                Service(
                    reads=pool,
                    writes=pool,
                    hub=StreamHub(pool, ledger.ended),
                    ledger=ledger,
                    database_disk_gb=1000,
                )
            )
        )
        conn.execute(
            "insert into audit_log (ts, action, result, operator)"
            " values (now() - interval '90 days', 'backup.file', 'ok', 'root@host')"
        )
        key = generous(conn, "someone@example.com")
        conn.execute("update stage_clocks set last_data_at = now(), beat_at = now()")
        conn.execute(
            "insert into feed_leases (run_id, feed, role, window_ends_at, detail)"
            " values ('run', 'polymarket', 'leader', now(),"
            " jsonb_build_object('rate', 5.0, 'backlog_events', 0, 'lag_p99_ms', 250))"
        )
        for path in ("/v1/markets", "/v1/nothing"):
            client.simulate_get(path, headers={"X-API-Key": key})
        told = client.simulate_get("/metrics").text
    found = dict(GIVEN)
    for family in text_string_to_metric_families(told):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found | {rule["record"]: set() for group in RULES for rule in group["rules"] if "record" in rule}


def tokens(expression):
    """Tokenize an expression; text that is not PromQL is left over."""
    at, cut = 0, []
    expression = expression.strip()
    while at < len(expression):
        match = TOKEN.match(expression, at)
        assert match, f"not understood: {expression[at:]}"
        cut.append((match.lastgroup, match.group().strip()))
        at = match.end()
    return cut


def labels_after(cut, place):
    """Return the names in the parentheses after `by` and `on`, and where they end."""
    assert cut[place + 1][0] == "open"
    end = next(i for i in range(place, len(cut)) if cut[i][0] == "close")
    return [text for kind, text in cut[place + 2 : end] if kind == "name"], end


@pytest.mark.parametrize(("where", "expression"), ALL, ids=[where for where, _ in ALL])
def test_an_expression_is_promql_over_metrics_that_there_are(where, expression, metrics):
    cut = tokens(expression)
    depth, used, asked, place = 0, set(), set(), 0
    while place < len(cut):
        kind, text = cut[place]
        before, after = cut[place - 1] if place else (None, ""), cut[place + 1] if place + 1 < len(cut) else (None, "")
        depth += {"open": 1, "close": -1}.get(kind, 0)
        assert depth >= 0
        if text in {"by", "on"} and kind == "name":
            names, place = labels_after(cut, place)
            asked |= set(names)
        elif kind == "name" and text not in WORDS:
            assert text in metrics, f"there is no metric {text}"
            assert before[0] in {None, "open", "operator", "comma", "close"} or before[1] in WORDS
            used.add(text)
        elif kind == "name" and text in FUNCTIONS:
            assert after[0] == "open", f"{text} is called"
        elif kind == "labels":
            matchers = text[1:-1].split(",")
            assert all(MATCHER.fullmatch(each) for each in matchers), text
            asked |= {MATCHER.fullmatch(each)["label"] for each in matchers}
        elif kind == "range":
            assert before[0] in {"name", "labels"}
            assert any(name in expression for name in ("rate(", "increase(", "predict_linear("))
        place += 1

    assert depth == 0
    assert used
    known = set().union(*(metrics[name] for name in used)) | SCRAPED
    assert asked <= known, f"no label {asked - known}"


def test_counters_are_asked_for_their_rate_and_nothing_else_is(metrics):
    for where, expression in ALL:
        for name in re.findall(r"\b(?:rate|increase)\(([a-z_:]+)", expression):
            assert name.endswith(("_total", "_bucket")), where
        bare = re.sub(r"\b(?:rate|increase)\([a-z_:]+", "", expression)
        assert not re.search(r"presage_\w+_(?:total|bucket)\b", bare), where


def test_every_alert_says_how_urgent_it_is_what_is_wrong_and_what_to_do():
    alerts = [rule for group in RULES for rule in group["rules"] if "alert" in rule]

    assert len({rule["alert"] for rule in alerts}) == len(alerts) > 10
    for rule in alerts:
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert re.fullmatch(r"\d+[sm]", rule["for"])


def test_every_alert_is_proved_to_fire_and_to_be_silent():
    proofs = yaml.safe_load((FOLDER / "prometheus-rules.test.yml").read_text())["tests"]
    tested = {(bool(one["exp_alerts"]), one["alertname"]) for proof in proofs for one in proof["alert_rule_test"]}

    alerts = {rule["alert"] for group in RULES for rule in group["rules"] if "alert" in rule}
    assert tested == {(fires, alert) for alert in alerts for fires in (True, False)}


@pytest.mark.parametrize(
    "check", [["check", "rules", "prometheus-rules.yml"], ["test", "rules", "prometheus-rules.test.yml"]]
)
def test_the_rules_pass_prometheus_own_checks(check):
    done = subprocess.run([debian_program("promtool"), *check], cwd=FOLDER, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_is_on_the_dashboard(metrics):
    shown = json.dumps(DASHBOARD)
    missing = [
        name
        for name in metrics
        if name.startswith("presage_") and not name.endswith(("_sum", "_count", "_created")) and name not in shown
    ]

    assert missing == ["presage_stage_fresh"]  # which the state of each stage says in more words


def test_panels_do_not_lie_on_each_other():
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
