"""Credits over several workers that serve many clients at once, are killed, stopped and started again."""

from __future__ import annotations

import http.client
import itertools
import json
import math
import os
import signal
import threading
import time
import urllib.request
from collections import Counter
from contextlib import closing
from dataclasses import dataclass

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from api.metering import keys
from api.metering import ledger_location as ledgers
from tests.api.conftest import generous, serving
from tests.patience import PATIENCE_S, until

CLIENTS = 64
QUOTA = 300


@dataclass
class Answer:
    """One answer, and when it was asked for; status None where the connection broke."""

    asked_at: float
    status: int | None
    used: int = 0
    burst_left: int = 0


class Asker:
    """A client that connects anew now and then: whoever keeps a connection keeps to one worker."""

    def __init__(self, server):
        self.asked = 0
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)

    def ask(self, key, path="/v1/markets", method="GET"):
        self.asked += 1
        if self.asked % 5 == 0:
            self.connection.close()
        asked_at = time.monotonic()
        try:
            self.connection.request(method, path, headers={"X-API-Key": key})
            answer = self.connection.getresponse()
            self.body = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            return Answer(asked_at, None)
        burst = answer.headers.get("RateLimit", ";r=0;").split(";r=")[1].split(";")[0]
        return Answer(asked_at, answer.status, int(answer.headers["X-Credits-Used"]), int(burst))


def all_at_once(server, work, clients=CLIENTS):
    """What many clients were answered, `work` giving what one was."""
    answers: list[Answer] = []
    gate = threading.Barrier(clients)

    def run():
        asker = Asker(server)
        with closing(asker.connection):
            gate.wait(PATIENCE_S)
            answers.extend(work(asker))

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def ask(server, key, path="/v1/markets", method="GET"):
    """One answer and its body, over a connection of its own."""
    asker = Asker(server)
    with closing(asker.connection):
        return asker.ask(key, path, method), asker.body


def asked_until(asker, key, refusal):
    """Ask until refused so, three times, and give all answers."""
    refusals = 0
    while refusals < 3:
        answer = asker.ask(key)
        refusals += answer.status == refusal
        yield answer


def two_answer(server):
    """Whether two workers serve: another one begins a moment later."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=PATIENCE_S) as answer:
        return b"\npresage_workers 2.0\n" in answer.read()


def used(conn, key):
    (number,) = conn.execute(
        "select coalesce(sum(used), 0)::int from credit_usage join api_keys using (key_id) where key_hash = %s",
        [keys.digest(key)],
    ).fetchone()
    return number


def numbers(answers):
    """What each paid answer said is used: no two say the same."""
    return sorted(answer.used for answer in answers if answer.status == 200)


@pytest.fixture(autouse=True)
def ledger_in(monkeypatch, tmp_path):
    monkeypatch.setenv("PRESAGE_METERING_DIR", str(tmp_path))
    return tmp_path


def test_at_the_edge_of_the_month_exactly_the_quota_is_served_also_when_a_worker_is_killed(database_url, conn):
    calm, struck = (generous(conn, f"{name}@example.com", credits_month=QUOTA) for name in ("calm", "struck"))
    with serving(database_url, workers=2) as server:
        answers = all_at_once(server, lambda asker: asked_until(asker, calm, 402))
        assert numbers(answers) == list(range(1, QUOTA + 1))
        assert {answer.status for answer in answers} == {200, 402}

        victim, other = server.workers()
        asked = itertools.count(1)

        def work(asker):
            for answer in asked_until(asker, struck, 402):
                if next(asked) == QUOTA // 3:  # all of them are under way, and much is left to be asked for
                    os.kill(victim, signal.SIGKILL)
                yield answer

        answers = all_at_once(server, work)
        lost = sum(answer.status is None for answer in answers)
        served = numbers(answers)
        assert len(set(served)) == len(served)
        assert QUOTA - min(lost, CLIENTS) <= len(served) <= QUOTA  # it may have been killed between two requests
        assert victim not in server.workers()
        assert other in server.workers()

    assert (used(conn, calm), used(conn, struck)) == (QUOTA, QUOTA)


def test_at_the_edge_of_the_second_exactly_the_burst_is_served(database_url, conn):
    key = generous(conn, "someone@example.com", credits_burst=20)
    with serving(database_url, workers=2) as server:
        ask(server, key)
        begin = int(time.time()) + 1
        refused: set[int] = set()  # seconds that had nothing left when someone asked

        def work(asker):
            while time.time() < begin:
                time.sleep(0.01)
            while len(refused) < 2:
                second = int(time.time())
                answer = asker.ask(key)
                if answer.status == 429 and int(time.time()) == second:
                    refused.add(second)
                yield answer

        answers = all_at_once(server, work)
        seconds = int(time.time()) - begin + 1

    # Each served answer tells what it left of its second: each second begins with 19, and no number comes twice in it.
    left = Counter(answer.burst_left for answer in answers if answer.status == 200)
    assert left[19] <= seconds
    assert left[0] >= len(refused)  # nobody is refused before a second's last credit is spent
    assert [left[number] for number in range(20)] == sorted(left.values())
    statuses = {answer.status for answer in answers}
    assert statuses - {503} == {200, 429}  # 503: a busy machine keeps some waiting for too long


def test_no_request_with_the_old_key_succeeds_after_the_answer_to_its_replacement(database_url, conn):
    chain = [generous(conn, "someone@example.com")]
    replaced_at = {}
    asked, done = [], threading.Event()
    with serving(database_url, workers=2, PRESAGE_UNAUTHENTICATED_REQUESTS_A_MINUTE="1000000") as server:

        def work(asker):
            for turn in itertools.count():
                if done.is_set():
                    return
                key = chain[-1] if turn % 2 else chain[max(0, len(chain) - 2)]
                yield key, asker.ask(key)
                asked.append(key)

        def let_ask():
            wanted = len(asked) + 50
            until(lambda: len(asked) >= wanted)

        def rotate():
            try:
                for _ in range(6):
                    let_ask()
                    _, body = ask(server, chain[-1], "/v1/keys/rotate", "POST")
                    replaced_at[chain[-1]] = time.monotonic()
                    chain.append(json.loads(body)["key"])
                let_ask()
            finally:
                done.set()

        rotating = threading.Thread(target=rotate)
        rotating.start()
        answers = all_at_once(server, work, clients=24)
        rotating.join()
        last, _ = ask(server, chain[-1])

    assert len(replaced_at) == 6
    assert last.status == 200
    late = [answer.status for key, answer in answers if answer.asked_at > replaced_at.get(key, math.inf)]
    assert len(late) > 50
    assert {401} <= set(late) <= {401, 503}  # 503: a busy machine keeps some waiting for too long
    served = sum(answer.status == 200 for _, answer in answers)
    assert served > 50
    assert last.used == served + 1  # all was counted, on one account
    assert used(conn, chain[-1]) == last.used


def test_what_is_not_spent_is_returned_when_the_last_worker_stops(database_url, conn, ledger_in):
    key = generous(conn, "someone@example.com")
    with serving(database_url, workers=2) as server:
        assert [answer.status for answer in all_at_once(server, lambda asker: [asker.ask(key)], clients=5)] == [200] * 5
        assert used(conn, key) == 100
        assert len(list(ledger_in.iterdir())) == 1
        stopped = server.workers()[0]
        os.kill(stopped, signal.SIGTERM)
        until(lambda: stopped not in server.workers() and two_answer(server))
        assert ask(server, key)[0].used == 6
        # Whoever stops as the only one that has served yet gives back what is not spent; the next one takes anew.
        assert used(conn, key) in {100, 5 + 100}

    assert used(conn, key) == 6
    assert list(ledger_in.iterdir()) == []


def test_a_host_whose_processes_were_all_killed_goes_on_where_it_stood(database_url, conn):
    key = generous(conn, "someone@example.com", credits_month=150)
    with serving(database_url, workers=2) as server:
        assert len(all_at_once(server, lambda asker: [asker.ask(key)], clients=5)) == 5
        for process in (server.process.pid, *server.workers()):
            os.kill(process, signal.SIGKILL)
        server.process.wait(PATIENCE_S)

    with serving(database_url, workers=2) as server:
        answers = all_at_once(server, lambda asker: asked_until(asker, key, 402), clients=8)

    assert numbers(answers) == list(range(6, 151))
    assert used(conn, key) == 150


def test_a_key_that_is_changed_from_outside_is_read_anew_at_once(database_url, conn, ledger_in):
    key = generous(conn, "someone@example.com")
    (number,) = conn.execute("select key_id from api_keys").fetchone()
    with serving(database_url, workers=2) as server:
        assert {ask(server, key)[0].status for _ in range(8)} == {200}

        conn.execute("update api_keys set revoked_at = now()")
        assert ledgers.end(conn, ledger_in, number)

        assert {ask(server, key)[0].status for _ in range(8)} == {401}


def test_the_stream_of_a_key_that_has_ended_is_closed(database_url, conn):
    key = generous(conn, "someone@example.com")
    with serving(database_url) as server, connect(server.stream(key), compression=None) as stream:
        assert json.loads(stream.recv(PATIENCE_S))["type"] == "hello"

        assert ask(server, key, "/v1/keys/rotate", "POST")[0].status == 200

        with pytest.raises(ConnectionClosed) as closed:
            stream.recv(PATIENCE_S)
    assert closed.value.rcvd.code == 1008
