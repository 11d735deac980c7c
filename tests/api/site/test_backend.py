"""The site's API client: request coalescing, caching, and a key of its own."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from api.metering import keys
from api.site import backend as backends
from api.site.backend import Backend
from api.site.credentials import Credentials
from api.site.mcp.access import KeyChecker
from api.site.visit import MAX_PRICES
from sql.roles.rights import SITE
from tests.roles import login_url


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


class Api(httpx.AsyncBaseTransport):
    """Transport that answers with the set status after a short delay, and records requests."""

    def __init__(self):
        self.asked, self.status, self.valid, self.away = [], 200, None, False

    async def handle_async_request(self, request):
        self.asked.append((request.url.raw_path.decode(), request.headers.get("X-API-Key")))
        await asyncio.sleep(0.01)
        if self.away:
            raise httpx.ConnectError("away")
        refused = self.valid is not None and request.headers.get("X-API-Key") != self.valid
        return httpx.Response(401 if refused else self.status, json={"n": len(self.asked)})


class FakeCredentials:
    """Credentials that issue keys k1, k2, …"""

    def __init__(self):
        self.number = 1

    def key(self):
        return f"k{self.number}"

    def mark_refused(self, key):
        self.number += key == self.key()
        return True


@pytest.fixture
def api():
    return Api()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def backend(api, clock):
    return Backend("http://api/", FakeCredentials(), transport=api, clock=clock)


def test_many_who_ask_the_same_at_once_are_one_request(backend, api):
    async def ask():
        return await asyncio.gather(*(backend.get("/v1/stats", {"a": 1, "none": None}) for _ in range(50)))

    answers = asyncio.run(ask())

    assert {answer.body for answer in answers} == {b'{"n":1}'}
    assert api.asked == [("/v1/stats?a=1", "k1")]


def test_an_answer_is_given_again_for_its_time_and_not_longer(backend, api, clock):
    async def ask():
        told = [(await backend.get("/v1/stats", max_age_s=5)).data["n"]]
        clock.now += 4.9
        told.append((await backend.get("/v1/stats", max_age_s=5)).data["n"])
        clock.now += 0.2
        told.append((await backend.get("/v1/stats", max_age_s=5)).data["n"])
        return told

    assert asyncio.run(ask()) == [1, 1, 2]


def test_the_prices_of_as_many_markets_as_the_api_gives_are_asked_for_once(backend, api):
    ids = ",".join(f"0x{number:064x}" for number in range(MAX_PRICES))

    async def ask():
        return [await backend.get("/v1/prices", {"ids": ids}) for _ in range(3)]

    answers = asyncio.run(ask())

    assert [answer.data for answer in answers] == [{"n": 1}] * 3
    assert len(api.asked) == 1


def test_who_goes_away_takes_nothing_from_the_others(backend, api):
    async def ask():
        impatient = asyncio.create_task(backend.get("/v1/stats"))
        patient = asyncio.create_task(backend.get("/v1/stats"))
        await asyncio.sleep(0)
        impatient.cancel()
        return await patient

    assert asyncio.run(ask()).data == {"n": 1}


def test_a_users_key_is_passed_on_and_nothing_is_kept_for_it(backend, api):
    async def ask():
        return [(await backend.get("/v1/stats", key="psg_user")).data["n"] for _ in range(2)]

    assert asyncio.run(ask()) == [1, 2]
    assert {key for _, key in api.asked} == {"psg_user"}


def test_while_the_api_is_away_the_last_answer_stands_for_two_minutes(backend, api, clock):
    async def ask():
        await backend.get("/v1/stats")
        api.away = True
        clock.now += 100
        kept = await backend.get("/v1/stats")
        clock.now += 100
        return kept, await backend.get("/v1/stats")

    kept, gone = asyncio.run(ask())

    assert kept.data == {"n": 1}
    assert (gone.status, gone.data["code"], gone.headers["retry-after"]) == (503, "overloaded", "2")


def test_a_key_that_is_no_longer_taken_is_replaced_at_once(backend, api):
    api.valid = "k2"

    answer = asyncio.run(backend.get("/v1/stats"))

    assert answer.status == 200
    assert [key for _, key in api.asked] == ["k1", "k2"]


def test_refusals_for_credits_are_not_kept(backend, api):
    async def ask():
        api.status = 429
        first = await backend.get("/v1/stats")
        api.status = 200
        return first.status, (await backend.get("/v1/stats")).status

    assert asyncio.run(ask()) == (429, 200)


@pytest.mark.parametrize(("status", "asked"), [(200, 1), (404, 1), (400, 2), (405, 2)])
def test_only_what_is_there_or_is_not_is_kept(backend, api, status, asked):
    async def ask():
        api.status = status
        return [(await backend.get("/v1/stats")).status for _ in range(2)]

    assert asyncio.run(ask()) == [status] * 2
    assert len(api.asked) == asked


def test_a_long_question_is_not_kept_and_the_length_of_others_counts(api, monkeypatch):
    monkeypatch.setattr(backends, "MAX_CACHE_BYTES", 5000)  # room for one of those below, and not for two
    backend = Backend("http://api/", FakeCredentials(), transport=api)

    async def ask(*questions):
        for question in questions:
            await backend.get("/v1/markets", {"q": question})

    asyncio.run(ask("é" * 4500, "é" * 4500))
    assert len(api.asked) == 2
    asyncio.run(ask("a" * 1900, "b" * 1900, "b" * 1900, "a" * 1900))
    assert len(api.asked) == 5


def test_a_header_in_any_script_reaches_the_api(backend):
    answer = asyncio.run(backend.request("GET", "/v1/stats", headers={"X-Forwarded-For": "日本"}))

    assert answer.status == 200


@pytest.mark.parametrize("key", ["", "wrong", "psg_", "psg_é", "psg_日本", "psg_a\n", "psg_" + "x" * 101, "psg_a b"])
def test_what_cannot_be_a_key_is_refused_without_asking(backend, api, key):
    refusal = asyncio.run(KeyChecker(backend).refusal(key))

    assert refusal.status_code == 401
    assert api.asked == []


@pytest.mark.parametrize(("status", "opens"), [(200, True), (402, True), (429, True), (401, False), (400, False)])
def test_a_key_opens_where_the_api_knows_it(backend, api, status, opens):
    api.status = status
    checker = KeyChecker(backend)

    refusals = [asyncio.run(checker.refusal("psg_user-1")) for _ in range(2)]

    assert [refusal is None for refusal in refusals] == [opens] * 2
    assert len(api.asked) == 1
    assert checker.is_cached("psg_user-1") == opens


@pytest.mark.parametrize(("status", "remembered_s"), [(200, 30), (401, 5)])
def test_whether_a_key_is_valid_is_remembered_for_a_while(backend, api, clock, status, remembered_s):
    api.status = status
    checker = KeyChecker(backend, clock)

    for later_s in (0, remembered_s - 1, 1):
        clock.now += later_s
        asyncio.run(checker.refusal("psg_user-1"))

    assert len(api.asked) == 2


def test_each_process_has_a_key_and_those_of_the_dead_end_and_are_used_again(conn, database_url):
    clocks = [Clock(), Clock()]
    first, second = (Credentials(login_url(database_url, SITE), clock) for clock in clocks)

    made = {first.key(), second.key(), first.key()}

    assert len(made) == 2
    valid = "select count(*) from api_keys where revoked_at is null and key_hash = any(%s)"
    assert conn.execute(valid, [[keys.digest(key) for key in made]]).fetchone() == (2,)
    conn.execute("update api_keys set created_at = now() - interval '3 hours'")
    clocks[0].now += 3600
    renewed = first.key()
    rows = conn.execute("select key_hash, revoked_at is null from api_keys order by key_id").fetchall()
    assert sorted(valid for _, valid in rows) == [False, True]
    assert (keys.digest(renewed), True) in rows


def test_a_refused_key_is_made_anew_but_not_each_time(database_url):
    clock = Clock()
    credentials = Credentials(login_url(database_url, SITE), clock)
    first = credentials.key()

    assert not credentials.mark_refused(first)
    clock.now += 10
    assert credentials.mark_refused(first)
    assert credentials.key() != first


def test_the_tiers_are_those_of_the_database(database_url):
    told = Credentials(login_url(database_url, SITE)).tiers()

    assert told[0] == ("free", 5000, 5, 1, 5, 5)
    assert [name for name, *_ in told] == ["free", "pro", "enterprise"]


def test_half_a_character_in_a_question_is_asked_with_a_replacement(backend, api):
    """JSON strings may contain lone surrogates."""
    answer = asyncio.run(backend.get("/v1/markets", {"q": "rain \ud800"}))

    assert answer.ok
    assert [path for path, _ in api.asked] == ["/v1/markets?q=rain+%3F"]
