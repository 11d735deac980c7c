from __future__ import annotations

import subprocess
import sys
import threading
import time

import psycopg
import pytest

from api.data.pool import Pool, Unreachable
from api.errors import Problem
from tests.patience import PATIENCE_S, until


@pytest.fixture
def pool(database_url):
    pool = Pool(database_url, 2, {"statement_timeout": 2000}, wait_s=0.3)
    yield pool
    pool.close()


def pid(conn):
    return conn.info.backend_pid


def test_the_last_connection_used_is_the_next_one_used(pool):
    with pool.connection() as first, pool.connection() as second:
        pids = pid(first), pid(second)
    for _ in range(3):
        with pool.connection() as conn:
            assert pid(conn) == pids[0]


def test_who_finds_all_connections_busy_is_told_so(pool):
    with pool.connection(), pool.connection(), pytest.raises(Problem) as problem, pool.connection():
        pass

    assert (problem.value.problem, problem.value.headers) == ("overloaded", {"Retry-After": "1"})
    with pool.connection() as conn:
        assert conn.execute("select 1").fetchone() == (1,)


def test_a_failed_statement_leaves_its_connection_usable(pool):
    before = pool.read(pid)
    with pytest.raises(psycopg.errors.UndefinedTable), pool.connection() as conn:
        conn.execute("select * from nowhere")

    with pool.connection() as conn:
        assert pid(conn) == before


def test_a_failed_transaction_leaves_its_connection_usable(pool):
    with pytest.raises(psycopg.errors.UndefinedTable), pool.connection() as conn, conn.transaction():
        conn.execute("select * from nowhere")

    with pool.connection() as conn:
        assert conn.execute("select 1").fetchone() == (1,)


class Interrupted(BaseException):
    pass


def test_an_interrupted_connection_is_not_used_again(pool):
    before = pool.read(pid)
    with pytest.raises(Interrupted), pool.connection():
        raise Interrupted

    with pool.connection() as conn:
        assert pid(conn) != before


def test_a_reader_does_not_notice_that_the_server_hung_up(pool, conn):
    with pool.connection() as first, pool.connection() as second:
        pids = [pid(first), pid(second)]
    conn.execute("select pg_terminate_backend(pid, 1000) from unnest(%s::int[]) as pid", [pids])

    assert pool.read(lambda conn: conn.execute("select 1").fetchone()) == (1,)
    assert pool.read(lambda conn: conn.execute("select 1").fetchone()) == (1,)


def test_an_unreachable_database_is_asked_by_one_and_not_by_all(tmp_path, monkeypatch):
    tries = []
    monkeypatch.setattr("api.data.pool.RETRY_S", 60.0)
    pool = Pool(f"postgresql:///nothing?host={tmp_path}", 4)
    connect = psycopg.connect
    monkeypatch.setattr("psycopg.connect", lambda *a, **k: (tries.append(1), connect(*a, **k))[1])

    for _ in range(10):
        with pytest.raises((Problem, psycopg.OperationalError)), pool.connection():
            pass

    assert len(tries) == 1


def test_while_one_asks_a_database_that_does_not_answer_the_others_do_not_wait(monkeypatch):
    asked, answers = [], threading.Semaphore(0)

    def connect(*_, **given):
        asked.append(given)
        assert answers.acquire(timeout=PATIENCE_S)
        raise psycopg.OperationalError("connection timeout expired")

    monkeypatch.setattr("api.data.pool.RETRY_S", 0.0)
    monkeypatch.setattr("psycopg.connect", connect)
    pool = Pool("postgresql://vanished", 4)
    said = []

    def ask():
        try:
            pool.read(lambda _: None)
        except (Problem, psycopg.OperationalError) as problem:
            said.append(type(problem))

    answers.release()
    ask()
    trial = threading.Thread(target=ask)
    trial.start()
    until(lambda: len(asked) == 2)
    for _ in range(5):
        ask()
    answers.release()
    trial.join(PATIENCE_S)

    assert said == [psycopg.OperationalError, *[Unreachable] * 5, psycopg.OperationalError]
    assert len(asked) == 2
    assert {(given["connect_timeout"], given["tcp_user_timeout"]) for given in asked} == {(5, 10_000)}


def test_a_connection_to_what_is_not_the_primary_any_more_is_not_used_again(pool):
    with pool.connection() as first, pool.connection() as second:
        before = {pid(first), pid(second)}
        for conn in (first, second):
            conn.execute("set default_transaction_read_only = on")  # as a demoted server does

    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), pool.connection() as conn:
        conn.execute("create table forecast ()")
    with pool.connection() as first, pool.connection() as second:
        after = {pid(first), pid(second)}

    assert not before & after


def test_what_is_asked_of_a_former_primary_is_asked_again_of_the_next(pool):
    with pool.connection() as conn:
        conn.execute("set default_transaction_read_only = on")

    assert pool.read(lambda conn: conn.execute("create table forecast ()").statusmessage) == "CREATE TABLE"


def test_integers_of_any_size_make_one_prepared_statement(pool):
    with pool.connection() as conn:
        for number in (1, 100_000, 2**40) * 3:
            conn.execute("select %s::bigint", [number])
        (count,) = conn.execute(
            "select count(*) from pg_prepared_statements where statement like 'select $1::bigint'"
        ).fetchone()

    assert count == 1


GEVENT = '''
from gevent import monkey; monkey.patch_all()
import sys, gevent, gevent.pool, psycopg
from api.data import waiting
from api.data.pool import Pool
waiting.install()
assert psycopg.waiting.wait is waiting.wait
pool = Pool(sys.argv[1], 6, {"statement_timeout": 30000})
ticks = []
def tick():
    while True:
        ticks.append(1)
        gevent.sleep(0.01)
ticker = gevent.spawn(tick)
wait_for_all = """
    do $$ begin
        while (
            select count(*) from pg_locks join pg_database on oid = database
            where locktype = 'advisory' and datname = current_database()
        ) < 6 loop perform pg_sleep(0.01); end loop;
    end $$
"""
def ask(_):
    with pool.connection() as conn:
        conn.execute("select pg_advisory_lock_shared(1)")  # as long as the connection lasts
        conn.execute(wait_for_all)  # for ever, if they wait for each other
        before = len(ticks)
        conn.execute("select pg_sleep(0.3)")
        return len(ticks) > before + 2  # others ran meanwhile
assert gevent.pool.Pool(6).map(ask, range(6)) == [True] * 6

with pool.connection() as conn:
    with conn.cursor() as cursor:
        cursor.execute("create temp table copied (text text)")
        with cursor.copy("copy copied from stdin") as copy:
            for _ in range(2000):
                copy.write_row(["x" * 1000])
        assert cursor.execute("select sum(length(text)) from copied").fetchone() == (2_000_000,)
    assert list(conn.notifies(timeout=0.1)) == []

before = pool.read(lambda conn: conn.info.backend_pid)
try:
    with gevent.Timeout(0.1), pool.connection() as conn:
        conn.execute("select pg_sleep(5)")
except gevent.Timeout:
    pass
assert pool.read(lambda conn: conn.execute("select 1").fetchone()) == (1,)
assert pool.read(lambda conn: conn.info.backend_pid) != before
print("done")
'''


def test_under_gevent_a_wait_lets_others_run_and_an_interrupted_one_ends_its_connection(database_url):
    ran = subprocess.run(
        [sys.executable, "-c", GEVENT, database_url], capture_output=True, text=True, timeout=100, check=False
    )

    assert ran.stdout == "done\n", ran.stderr


def test_many_who_ask_the_same_ask_once():
    from api.data.cache import Cache

    cache, asked = Cache(), []

    def ask():
        asked.append(1)
        time.sleep(0.2)
        return b"answer", "tag"

    threads = [threading.Thread(target=cache.get, args=("question", 5, ask)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert cache.get("question", 5, ask) == (b"answer", "tag")
    assert len(asked) == 1


def test_a_failure_is_not_kept_and_an_answer_only_for_its_time():
    from api.data.cache import Cache

    now = [0.0]
    cache = Cache(clock=lambda: now[0])
    with pytest.raises(ZeroDivisionError):
        cache.get("question", 5, lambda: 1 / 0)

    assert cache.get("question", 0.05, lambda: (b"first", "")) == (b"first", "")
    assert cache.get("question", 5, lambda: (b"second", "")) == (b"first", "")
    now[0] = 0.06
    assert cache.get("question", 5, lambda: (b"second", "")) == (b"second", "")


def test_what_is_kept_is_bounded(monkeypatch):
    from api.data import cache as module

    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    cache = module.Cache()
    for number in range(50):
        cache.get(number, 60, lambda: (b"x" * 100, ""))

    assert len(cache._entries) == 10
    assert cache._entries.currsize == 1000
    assert cache.get("too large", 60, lambda: (b"x" * 1001, "")) == (b"x" * 1001, "")
    assert len(cache._entries) == 10
