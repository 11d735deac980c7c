"""The API benchmark: its requests, its measurements, and its report."""

from __future__ import annotations

import itertools
import os
import re
import socket
import threading
import time
from contextlib import closing

import pytest

from api.endpoints.table import ENDPOINTS
from benchmarks.api.api import beside
from benchmarks.api.load import LoadClient, cpu_s, press, request
from benchmarks.api.questions import NOT_ASKED, QUERY_VARIANTS, Questions
from benchmarks.api.report import BEGIN, END, Report, write
from benchmarks.figures import Target
from benchmarks.harness import quantile


@pytest.mark.parametrize(
    "endpoint", [each for each in ENDPOINTS if each.name not in NOT_ASKED], ids=lambda each: each.name
)
def test_every_endpoint_is_asked_something_whole(endpoint):
    questions = Questions([5, 6, 7], 50)
    several = [
        *itertools.islice(questions.usual(endpoint), 12),
        *itertools.islice(questions.largest(endpoint) or (), 3),
    ]

    for question in several:
        assert re.fullmatch(r"[\x21-\x7e]+", question.path)
        assert "{" not in question.path
        assert question.method == endpoint.method
        assert bool(question.body) == (endpoint.body is not None)
    assert set(QUERY_VARIANTS) <= {each.name for each in ENDPOINTS}


@pytest.fixture
def server():
    """A server that responds in two pieces; counts its requests."""
    listening = socket.create_server(("127.0.0.1", 0))
    asked = []

    def serve(conn):
        with conn:
            while data := conn.recv(65536):
                asked.append(data)
                conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234")
                time.sleep(0.002)
                conn.sendall(b"56789")

    def accept():
        while True:
            try:
                conn, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=[conn], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listening.getsockname()[1], asked
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def test_a_client_waits_for_the_whole_answer(server):
    port, asked = server
    with closing(LoadClient(port)) as client:
        answer = client.ask(request("POST", "/x", {"A": "b"}, b"body"))

    assert (answer.status, answer.size, b"".join(client.body)) == (200, 10, b"0123456789")
    assert asked == [b"POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nA: b\r\nContent-Length: 4\r\n\r\nbody"]


def test_pressing_counts_each_answer_once(server):
    port, asked = server

    answered = press(port, [request("GET", "/x", {})], clients=3, seconds=0.5)

    assert answered == len(asked) > 3


def test_cpu_time_is_that_of_the_process():
    before, began = cpu_s([os.getpid(), 2**30]), time.process_time()
    while time.process_time() - began < 0.2:
        pass

    assert 0.15 < cpu_s([os.getpid()]) - before < 0.5


def test_a_ratio_comes_with_the_spread_of_its_turns():
    found = beside("ours", [10.0, 20.0, 30.0], "theirs", [10.0, 10.0, 20.0], Target("ratio", "<=", 1.0))

    assert (found.value, found.rival_value, found.ratio, found.spread, found.met) == (20, 10, 2, (1, 2), False)


def test_a_quantile_is_one_of_the_values():
    assert quantile([float(n) for n in range(100)], 0.99) == 99
    assert quantile([3.0], 0.99) == 3


def test_the_measured_part_of_a_page_is_written_anew(tmp_path):
    file = tmp_path / "performance.md"
    file.write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n")

    for _ in range(2):
        write(file, Report((0.1, 0.2, 0.3)))

    text = file.read_text()
    assert text.startswith(f"before\n\n{BEGIN}\nMeasured ")
    assert text.endswith(f"{END}\n\nafter\n")
    assert text.count(BEGIN) == text.count(END) == 1
    assert "old" not in text
