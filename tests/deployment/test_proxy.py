"""The proxy's configuration in docker-compose.yml, run by the real Caddy in front of plain servers."""

import http.client
import socket
import subprocess

import pytest

from tests.debian_programs import debian_program
from tests.deployment.proxies import SECRET
from tests.patience import PATIENCE_S

SESSION = "dGhlIHNlc3Npb24gb2YgYW4gYWdlbnQ"
HEADERS = ("X-Api-Key", "X-Debug-Token", "Authorization", "Cookie", "Referer", "User-Agent", "Sec-WebSocket-Protocol")
PATHS = [
    f"/v1/markets?api_key={SECRET}",
    f"/stream?token={SECRET}&types=trade",
    f"/sse?key={SECRET}",
    f"/sse/{SESSION}/messages/",
    f"/%73s%65/{SESSION}/messages/?x={SECRET}",
    f"/nowhere/{SECRET}",
]


def test_the_configuration_is_valid(config, proxy):
    command = [debian_program("caddy"), "validate", "--adapter", "caddyfile", "--config", proxy().file]

    done = subprocess.run(command, env=proxy().environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_no_key_is_logged_when_the_service_behind_fails(proxy):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        soon = (("lb_try_duration 10s", "lb_try_duration 200ms"), ("lb_try_duration 60s", "lb_try_duration 200ms"))
        broken = proxy(*soon, to=[f"127.0.0.1:{nobody.getsockname()[1]}"] * 3)
        for path in PATHS:
            assert broken.request(path, dict.fromkeys(HEADERS, SECRET))[0] in {502, 503}
    broken.stop()

    logged = broken.log.read_text()
    assert logged.count('"uri":"/') >= len(PATHS)
    assert SECRET not in logged
    assert SESSION not in logged
    assert "/v1/marketsREDACTED" in logged


def test_no_key_is_logged_by_an_access_log_either(proxy):
    asked = proxy(("import secure", "import secure\n  log"))
    for path in PATHS:
        assert asked.request(path, dict.fromkeys(HEADERS, SECRET))[0] == 200
    asked.stop()

    logged = asked.log.read_text()
    assert logged.count("http.log.access") >= len(PATHS)
    assert SECRET not in logged
    assert SESSION not in logged


METRICS = ["/metrics", "/metrics/", "/METRICS", "/Metrics/", "/%6detrics", "/metrics%2f", "//metrics", "/x/../metrics"]
METRICS += ["/./metrics", "/metrics?x", "/metrics/?x", "/metrics/x", "/%2fmetrics", "/metrics//"]


@pytest.mark.parametrize("path", METRICS)
def test_the_metrics_are_not_shown_to_the_outside_however_they_are_asked_for(proxy, backend, path):
    asked = proxy()
    backend.paths.clear()

    assert asked.request(path)[0] == 404
    assert asked.request("/v1/metrics_of_nothing")[0] == 200
    assert backend.paths == ["/v1/metrics_of_nothing"]


def test_browsers_are_told_to_stay_with_tls_where_there_is_tls(proxy):
    local = ("admin off", "admin off\n  skip_install_trust\n  auto_https disable_redirects")

    assert proxy(local, scheme="https").request("/")[1]["Strict-Transport-Security"] == "max-age=31536000"
    assert proxy().request("/")[1]["Strict-Transport-Security"] is None


def test_a_malformed_request_does_not_keep_others_from_the_service(proxy):
    asked = proxy()
    with socket.create_connection(("localhost", asked.port), timeout=PATIENCE_S) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n")
        client.recv(1000)
    connection = http.client.HTTPConnection("localhost", asked.port, timeout=PATIENCE_S)
    connection.request("POST", "/", body=b"{}")

    answer = connection.getresponse()

    assert answer.status == 501  # of the service, which knows no POST; of the proxy it would be 503
    connection.close()
