"""Dagster's web server refuses strangers and other web pages, and serves those who have the password."""

import base64
import http.client
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest
from pydantic import ValidationError
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from cli.stack.readiness import answers
from config import settings
from config.settings import Settings
from orchestration.webserver import MAX_WRONG, WRONG_TTL_S, Guard, main
from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from tests.processes import terminate

ROOT = Path(__file__).parents[2]
PASSWORD = "correct horse battery staple"
DELETE = "mutation Delete($id: String!) { deletePipelineRun(runId: $id) { __typename } }"
LOGS = "subscription Logs($id: ID!) { pipelineRunLogs(runId: $id) { __typename } }"
JSON = {"Content-Type": "application/json"}
OWN_PAGE = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
OTHER_PAGE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}


def basic(password=PASSWORD, user="presage"):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@dg.job
def nothing():
    pass


class Webserver:
    """A running web server, and the instance whose runs it shows."""

    def __init__(self, port, instance):
        self.port, self.instance, self.host = port, instance, f"127.0.0.1:{port}"
        self.page = {"Origin": f"http://{self.host}", **OWN_PAGE}

    def request(self, method, path, headers=None, body=None):
        """Send exactly this; `headers` may replace Host."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            headers = {"Host": self.host, **(headers or {})}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return SimpleNamespace(status=response.status, headers=response.headers, text=response.read().decode())
        finally:
            connection.close()

    def run(self):
        """Return the id of a new run."""
        with ThreadPoolExecutor(1) as thread:  # a browser's has an event loop that runs already
            return thread.submit(nothing.execute_in_process, instance=self.instance).result().run_id

    def exists(self, run_id):
        return self.instance.get_run_by_id(run_id) is not None

    def delete_in_url(self, run_id):
        from urllib.parse import urlencode

        return "/graphql?" + urlencode({"query": DELETE, "variables": json.dumps({"id": run_id})})

    def subscribe(self, headers):
        return connect(
            f"ws://{self.host}/graphql",
            additional_headers={name: value for name, value in headers.items() if name != "Origin"},
            origin=headers.get("Origin"),
            subprotocols=["graphql-ws"],
            proxy=None,
            open_timeout=PATIENCE_S,
        )


@pytest.fixture(scope="module")
def webserver(tmp_path_factory):
    home = tmp_path_factory.mktemp("dagster")
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (home / "workspace.yaml").write_text("load_from: []\n")
    port = free_port()
    command = [sys.executable, "-m", "orchestration.webserver", "--port", str(port)]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--workspace", str(home / "workspace.yaml")],
            cwd=ROOT,
            env={**os.environ, "DAGSTER_HOME": str(home), "PRESAGE_DAGSTER_PASSWORD": PASSWORD},
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: process.poll() is not None or answers(f"http://127.0.0.1:{port}/server_info"))
        assert process.poll() is None, (home / "log").read_text()
        with dg.DagsterInstance.from_config(str(home)) as instance:
            yield Webserver(port, instance)
    finally:
        terminate(process)


def test_the_pages_own_requests_with_the_password_work(webserver):
    run_id, body = webserver.run(), {"query": DELETE}

    page = webserver.request("GET", "/runs", basic() | {"Accept": "text/html", "Sec-Fetch-Site": "none"})
    deleted = webserver.request(
        "POST", "/graphql", basic() | JSON | webserver.page, body | {"variables": {"id": run_id}}
    )

    assert page.status == 200
    assert "<html" in page.text
    assert page.headers["X-Frame-Options"] == "DENY"
    assert deleted.status == 200, deleted.text
    assert not webserver.exists(run_id)


def test_programs_with_the_password_need_no_headers_of_a_browser(webserver):
    answer = webserver.request("POST", "/graphql", basic() | JSON, {"query": "{ version }"})

    assert answer.status == 200
    assert json.loads(answer.text)["data"]["version"]


@pytest.mark.parametrize(
    "path",
    ["/", "/runs", "/graphql", "/favicon.png", "/download_debug/1", "/logs/a.out", "/server_info/", "//server_info"],
)
def test_nothing_but_the_version_is_shown_without_the_password(webserver, path):
    answer = webserver.request("GET", path, {"Accept": "text/html"})

    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")
    assert set(json.loads(webserver.request("GET", "/server_info").text)) == {
        "dagster_webserver_version",
        "dagster_version",
        "dagster_graphql_version",
    }


def test_no_run_is_ended_without_the_password(webserver):
    run_id = webserver.run()
    body = {"query": DELETE, "variables": {"id": run_id}}

    for headers in (
        {},
        basic("wrong password 1"),
        basic(user="admin"),
        {"Authorization": "Basic !"},
        {"Authorization": "x"},
    ):
        assert webserver.request("POST", "/graphql", JSON | headers, body).status == 401
    assert webserver.request("POST", "/report_asset_materialization/some", JSON, {}).status == 401
    assert webserver.exists(run_id)


@pytest.mark.parametrize("headers", [{}, OTHER_PAGE, OTHER_PAGE | {"Accept": "text/html"}])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_no_run_is_ended_by_an_address_alone(webserver, method, headers):
    run_id = webserver.run()

    answer = webserver.request(method, webserver.delete_in_url(run_id), basic() | headers)

    assert answer.status in {403, 405}
    assert webserver.exists(run_id)


@pytest.mark.parametrize("kind", ["text/plain", "text/plain; application/json", "application/graphql", ""])
def test_a_form_of_another_page_ends_no_run(webserver, kind):
    """A browser sends these without asking the server, and adds its stored password."""
    run_id = webserver.run()
    old_browser = basic() | {"Content-Type": kind}
    body = {"query": DELETE, "variables": {"id": run_id}}

    assert webserver.request("POST", webserver.delete_in_url(run_id), old_browser, body).status == 415
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        OTHER_PAGE,
    ):
        assert webserver.request("POST", "/graphql", basic() | JSON | headers, body).status == 403
        assert (
            webserver.request("POST", "/report_asset_materialization/some", basic() | JSON | headers, {}).status == 403
        )
    assert webserver.exists(run_id)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:3000", "127.0.0.1.evil.example", "user@127.0.0.1", "", "[::1"]
)
def test_a_name_that_leads_here_without_being_ours_ends_no_run(webserver, host):
    run_id = webserver.run()
    body = {"query": DELETE, "variables": {"id": run_id}}
    rebound = {"Host": host, "Origin": f"http://{host}", **OWN_PAGE}

    assert webserver.request("POST", "/graphql", basic() | JSON | rebound, body).status in {400, 421}
    assert webserver.request("GET", "/server_info", {"Host": host}).status in {400, 421}
    assert webserver.exists(run_id)


def test_a_link_from_another_page_may_be_followed(webserver):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}

    assert webserver.request("GET", "/runs", basic() | link | {"Accept": "text/html"}).status == 200
    assert webserver.request("GET", "/runs", basic() | link | {"Sec-Fetch-Dest": "iframe"}).status == 403


def test_the_log_of_a_run_is_followed_over_a_websocket(webserver):
    run_id = webserver.run()

    with webserver.subscribe(basic() | {"Origin": f"http://{webserver.host}"}) as following:
        following.send(json.dumps({"type": "connection_init"}))
        assert json.loads(following.recv(PATIENCE_S)) == {"type": "connection_ack"}
        start = {"type": "start", "id": "1", "payload": {"query": LOGS, "variables": {"id": run_id}}}
        following.send(json.dumps(start))
        told = json.loads(following.recv(PATIENCE_S))

    assert told["type"] == "data"
    assert told["payload"]["data"]["pipelineRunLogs"]["__typename"] == "PipelineRunLogsSubscriptionSuccess"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (basic() | {"Origin": "https://evil.example"}, 403),
        (basic() | {"Origin": "null"}, 403),
        (basic() | OTHER_PAGE, 403),
        ({}, 401),
        (basic("wrong password 2"), 401),
    ],
)
def test_a_websocket_of_another_page_or_without_the_password_is_not_opened(webserver, headers, status):
    with pytest.raises(InvalidStatus) as refused, webserver.subscribe(headers):
        pass

    assert refused.value.response.status_code == status


async def served(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def status(guard, address="10.0.0.1", host="localhost", **headers):
    """Return the status of a request to a guard."""
    sent = []

    async def send(message):
        sent.append(message)

    named = {"host": host, **{name.lower(): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "client": (address, 1),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    with pytest.raises(StopIteration):
        guard(scope, None, send).send(None)
    return sent[0]["status"]


def test_after_ten_wrong_passwords_an_address_waits_for_a_minute():
    now = [0.0]
    guard = Guard(served, PASSWORD, clock=lambda: now[0])

    assert [status(guard, **basic(f"guess {n}")) for n in range(MAX_WRONG)] == [401] * MAX_WRONG
    assert status(guard, **basic()) == 429
    assert status(guard, **basic(), address="10.0.0.2") == 200
    now[0] = WRONG_TTL_S - 1
    assert status(guard, **basic()) == 429
    now[0] = WRONG_TTL_S + 1
    assert status(guard, **basic()) == 200


def test_further_host_names_are_allowed_by_a_setting():
    given = Settings(_env_file=None, dagster_hosts="Dagster.example.com, other.example")
    guard = Guard(served, PASSWORD, given.dagster_host_names)

    assert status(guard, **basic(), host="dagster.example.com:8443") == 200
    assert status(guard, **basic(), host="dagster.example.com", Origin="https://dagster.example.com") == 200
    assert status(guard, **basic(), host="dagster.example.com", Origin="https://other.example") == 403
    assert status(guard, **basic(), host="example.com") == 421
    assert status(Guard(served, PASSWORD), **basic(), host="dagster.example.com") == 421


def test_it_is_never_served_without_a_password(monkeypatch, capsys):
    monkeypatch.setattr(settings, "get", lambda: Settings(_env_file=None))

    with pytest.raises(SystemExit):
        main(["--port", "1", "--workspace", "none"])

    assert "PRESAGE_DAGSTER_PASSWORD is not set" in capsys.readouterr().err


def test_a_password_that_is_too_short_is_refused_without_being_shown():
    with pytest.raises(ValidationError, match="at least 16") as refused:
        Settings(_env_file=None, dagster_password="too-short")

    assert "too-short" not in str(refused.value)
