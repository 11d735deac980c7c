"""Log lines of all processes are machine-readable: same format, with the request or the run they belong to."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import dagster as dg
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from api.site.middleware import RequestId
from cli.stack.processes.program import tail
from config import logging as logs
from orchestration import console
from tests.api.conftest import generous, serving
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def said(program, log_format):
    """Return what a process writes to its log."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import logging; from config import logging as logs; logs.configure('trial'); {program}",
        ],
        cwd=ROOT,
        env={**os.environ, "PRESAGE_LOG_FORMAT": log_format},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stdout == ""
    return done.stderr


def test_a_line_says_when_how_bad_who_and_what():
    program = "logs.bind(run_id='r1'); logging.getLogger('orchestration.ingest').info('%d rows', 7)"

    (line,) = said(program, "json").splitlines()

    told = json.loads(line)
    assert INSTANT.fullmatch(told.pop("timestamp"))
    assert told.pop("pid") > 0
    assert told == {
        "event": "7 rows",
        "level": "info",
        "logger": "orchestration.ingest",
        "process": "trial",
        "run_id": "r1",
    }


@pytest.mark.parametrize("program", ["1 / 0", "import threading; threading.Thread(target=lambda: 1 / 0).start()"])
def test_what_nobody_caught_is_one_line_with_its_traceback(program):
    (line,) = said(program, "json").splitlines()

    told = json.loads(line)
    assert told["level"] == "critical"
    assert told["exception"].startswith("Traceback")
    assert told["exception"].endswith("ZeroDivisionError: division by zero")


def test_libraries_are_heard_when_something_is_wrong_only():
    program = "logging.getLogger('httpx').info('GET https://rpc.example/a-key'); logging.getLogger('x').warning('odd')"

    (line,) = said(program, "json").splitlines()

    assert json.loads(line)["event"] == "odd"


def test_text_is_for_reading():
    text = said("logging.getLogger('sql').error('it broke')", "text")

    assert re.search(r"\[error +\] it broke", text)


def test_what_was_logged_before_does_not_keep_lines_from_being_json():
    configured = "from config import logging as logs; logs.configure('trial')"
    program = f"import logging; logging.warning('early'); {configured}; logging.warning('later')"

    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)

    early, later = done.stderr.splitlines()
    assert early == "WARNING:root:early"
    assert json.loads(later)["event"] == "later"


def test_who_has_set_up_logging_is_left_alone():
    before = list(logging.getLogger().handlers)

    logs.configure("tests")

    assert before
    assert logging.getLogger().handlers == before


def test_each_answer_of_the_api_has_a_line_with_its_request_id(database_url, conn):
    key = generous(conn, "someone@example.com")
    asked = {"first-1": "/v1/time", "second.2": "/v1/markets?limit=0&api_key=secret", "third_3": "/nowhere"}
    with serving(database_url) as server:
        for name, path in asked.items():
            request = urllib.request.Request(
                f"{server.url}{path}", headers={"X-Request-Id": name, "X-API-Key": key, "User-Agent": 'a "quoted" one'}
            )
            try:
                urllib.request.urlopen(request, timeout=PATIENCE_S).close()
            except urllib.error.HTTPError as refused:
                refused.close()
        log = server.stop()

    lines = [json.loads(line) for line in log.splitlines()]
    answered = {line["request_id"]: line for line in lines if line.get("request_id") in asked}
    assert [(line["path"], line["status"]) for line in answered.values()] == [
        ("/v1/time", 200),
        ("/v1/markets", 400),
        ("/nowhere", 404),
    ]
    assert answered["second.2"]["query"] == "limit=0&api_key=REDACTED"
    assert {line["process"] for line in lines} == {"api"}
    assert "secret" not in log
    assert all(line["microseconds"] > 0 and line["method"] == "GET" for line in answered.values())


def test_the_sites_requests_have_names_in_answer_and_log():
    async def page(request):
        return PlainTextResponse(logs.request_id.get())

    client = TestClient(Starlette(routes=[Route("/", page)], middleware=[Middleware(RequestId)]))

    given = client.get("/", headers={"X-Request-Id": "mine-1"})
    made = client.get("/", headers={"X-Request-Id": 'not "sane"'})

    assert given.text == given.headers["x-request-id"] == "mine-1"
    assert re.fullmatch("[0-9a-f]{16}", made.text)
    assert made.headers["x-request-id"] == made.text


def test_what_a_run_logs_names_it_and_its_step(capsys, monkeypatch):
    monkeypatch.setattr(logs, "_of_process", {})
    console.install()

    @dg.op
    def weigh(context):
        context.log.warning("too heavy")
        raise ValueError("over 40 t")

    @dg.job
    def weighing():
        weigh()

    done = weighing.execute_in_process(raise_on_error=False)

    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    (line,) = [line for line in lines if line["event"] == "too heavy"]
    expected = {"run_id": done.run_id, "job": "weighing", "step": "weigh", "process": "run", "level": "warning"}
    assert {name: line[name] for name in expected} == expected
    (failed,) = [line for line in lines if line["event"] == 'Execution of step "weigh" failed.']
    assert "ValueError: over 40 t" in failed["exception"]
    assert failed["run_id"] == done.run_id


def test_the_end_of_a_log_is_shown_as_one_reads_it(tmp_path):
    log = tmp_path / "api.server.log"
    log.write_text(
        'not of ours\n{"event": "it broke", "level": "error", "exception": "Traceback\\n  at it"}\n{"no": "event"}\n'
    )

    assert tail(log) == 'not of ours\nERROR: it broke\nTraceback\n  at it\n{"no": "event"}'
