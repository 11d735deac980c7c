"""Token buckets of the sandbox Kalshi."""

import asyncio
from types import SimpleNamespace

import httpx
from starlette.responses import PlainTextResponse

from tests.upstream.sandbox.kalshi.conftest import Signer
from upstream.sandbox.kalshi.faults import KalshiFaults
from upstream.sandbox.kalshi.limits import TIERS, Gate
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.sandbox.kalshi.signatures import KeyRing


def test_a_bucket_is_emptied_and_refilled_by_time():
    now = SimpleNamespace(s=0.0)
    keys, faults = KeyRing({}), KalshiFaults(lambda: now.s)
    gate = Gate(PlainTextResponse("yes"), TIERS["basic"], keys, faults, clock=lambda: now.s)

    async def ask(many):
        transport = httpx.ASGITransport(gate)
        async with httpx.AsyncClient(transport=transport, base_url="http://exchange") as http:
            return [(await http.get("/trade-api/v2/markets")).status_code for _ in range(many)]

    assert asyncio.run(ask(41)) == [200] * 40 + [429]
    now.s += 0.25
    assert asyncio.run(ask(6)) == [200] * 5 + [429]
    now.s += 60
    assert asyncio.run(ask(41)) == [200] * 40 + [429], "no more than the bucket holds"


def test_each_key_has_a_bucket_and_a_refusal_does_not_say_when_to_come_again(http):
    with KalshiSandbox(simulate=3, markets=20, hold=True, tier="basic") as exchange:
        exchange.gate._clock = lambda: 0.0
        path = "/trade-api/v2/exchange/status"
        answers = [http.get(f"{exchange.url}{path}") for _ in range(41)]
        signed = http.get(f"{exchange.url}{path}", headers=Signer(exchange, http).headers(path))
        status = http.get(f"{exchange.url}/sandbox/status").json()

    assert [answer.status_code for answer in answers] == [200] * 40 + [429]
    assert answers[-1].json() == {"error": "too many requests"}
    assert not {"retry-after", "x-ratelimit-remaining"} & answers[-1].headers.keys()
    assert signed.status_code == 200
    assert status["requests"] == {"answered": 41, "refused": 1, "unauthorized": 0}
