"""Dagster's UI in a browser, behind its password."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright import sync_api

from tests.orchestration.test_webserver import PASSWORD, webserver
from tests.patience import until

__all__ = ["webserver"]


pytestmark = pytest.mark.soak  # needs Chromium


def test_the_ui_loads_its_data_and_follows_a_run_over_its_websocket(browser, webserver):
    run_id = webserver.run()
    credentials = {"username": "presage", "password": PASSWORD}
    with browser.new_context(http_credentials=credentials) as context:
        page = context.new_page()
        refused, frames = [], []
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        page.on("websocket", lambda opened: opened.on("framereceived", lambda frame: frames.append(str(frame))))
        page.goto(f"http://{webserver.host}/runs/{run_id}")
        sync_api.expect(page.get_by_text("RUN_SUCCESS").first).to_be_visible()
        until(lambda: page.wait_for_timeout(50) or any("PipelineRunLogsSubscriptionSuccess" in each for each in frames))

    assert not refused


class EmptyPage(BaseHTTPRequestHandler):
    """A page of another site on this machine, which no browser keeps from asking 127.0.0.1."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def other_site():
    with ThreadingHTTPServer(("127.0.0.1", 0), EmptyPage) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


def test_a_page_of_another_site_cannot_end_a_run_for_someone_who_is_logged_in(browser, webserver, other_site):
    run_id = webserver.run()
    with browser.new_context(http_credentials={"username": "presage", "password": PASSWORD}) as context:
        page = context.new_page()
        page.goto(f"http://{webserver.host}/runs")
        assert page.evaluate("async () => (await fetch('/server_info')).status") == 200
        statuses = []
        other = context.new_page()
        other.on("response", lambda answer: statuses.append(answer.status) if webserver.host in answer.url else None)
        other.goto(other_site)
        socket = other.evaluate(
            """async ([url, host]) => {
                const image = new Image()
                await new Promise(done => { image.onerror = image.onload = done; image.src = url })
                const asked = {mode: 'no-cors', credentials: 'include'}
                await fetch(url, asked).catch(() => {})
                await fetch(url, {...asked, method: 'POST', body: '{}'}).catch(() => {})
                const socket = new WebSocket('ws://' + host + '/graphql', 'graphql-ws')
                return await new Promise(done => {
                    socket.onopen = () => done('opened')
                    socket.onerror = () => done('refused')
                })
            }""",
            [f"http://{webserver.host}{webserver.delete_in_url(run_id)}", webserver.host],
        )

    assert socket == "refused"
    assert len(statuses) >= 3
    assert set(statuses) <= {401, 403}
    assert webserver.exists(run_id)
