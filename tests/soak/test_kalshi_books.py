"""Kalshi's books from 100,000 changes under faults, equal to the sandbox's whenever nothing is under way."""

import asyncio
import json
import os
import random
import time

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.patience import until
from tests.upstream.kalshi.auditing import FeedRecord
from tests.upstream.kalshi.following import Follower
from upstream.kalshi.signing import Signer
from upstream.sandbox.kalshi.server import KalshiSandbox

CHANGES = int(os.environ.get("PRESAGE_SOAK_CHANGES", "100000"))
RATE = int(os.environ.get("PRESAGE_SOAK_RATE", "2000"))
CALM_S, FAULTY_S = 2.0, 2.0
FAULTS = {
    "drop": [{"kind": "drop", "probability": 0.001}],
    "skip_seq": [{"kind": "skip_seq", "probability": 0.001}],
    "repeat_seq": [{"kind": "repeat_seq", "probability": 0.001}],
    "duplicate": [{"kind": "duplicate", "probability": 0.05}],
    "reorder": [{"kind": "reorder", "probability": 0.001}],
    "late": [{"kind": "late", "probability": 0.001, "delay_s": 0.3}],
    "cut_frame": [{"kind": "cut_frame", "probability": 0.001}],
    "silent": [{"kind": "silent", "for_s": 0.5}],
    "end_subscription": [{"kind": "end_subscription"}],
    "end_channel": [{"kind": "end_subscription", "code": 10}],
    "close": [{"kind": "close", "status": 1001}],
    "break": [{"kind": "close"}],
    "refuse": [{"kind": "refuse", "for_s": 1}, {"kind": "close"}],
    "reject_signature": [{"kind": "reject_signature", "for_s": 1}, {"kind": "close"}],
}
PAUSE = {"kind": "pause"}


class Control:
    """The sandbox's control routes."""

    def __init__(self, sandbox):
        self.url = f"{sandbox.url}/sandbox"
        self.http = httpx.AsyncClient(trust_env=False, timeout=60)

    async def plan(self, *faults):
        (await self.http.post(f"{self.url}/faults", json=[*faults])).raise_for_status()

    async def clear(self):
        (await self.http.delete(f"{self.url}/faults")).raise_for_status()

    async def trade_a_moment(self):
        """Let something come after a loss of the last message, which shows by the next one only."""
        await self.clear()
        await asyncio.sleep(0.2)
        await self.plan(PAUSE)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_books_from_many_changes_with_gaps_repeats_and_disconnects_are_the_sandboxs_own(tmp_path):
    log = tmp_path / "truth.jsonl"
    with KalshiSandbox(simulate=17, markets=60, rate=RATE, log=log) as sandbox:
        tickers = [ticker for ticker, each in sandbox.exchange.markets.items() if each.status == "active"]
        tickers = [ticker for ticker in tickers if not sandbox.exchange.markets[ticker].combo][:40]
        made = sandbox.keys.create("ed25519")
        signer = Signer(made["api_key_id"], load_pem_private_key(made["private_key"].encode(), None))
        record = FeedRecord(tickers)
        began = time.monotonic()
        rounds, compared = asyncio.run(run(sandbox, signer, tickers, record))
        took_s = time.monotonic() - began
        hits = {}
        for fault in sandbox.faults.past:
            if fault.kind != "pause":
                hits[fault.kind] = hits.get(fault.kind, 0) + fault.hits
    with log.open(encoding="utf-8") as lines:
        report = record.audit(map(json.loads, lines), tickers)

    print(
        f"{report}\n{rounds} rounds in {took_s:.0f} s, {compared:,} books compared, {record.snapshots:,} snapshots;"
        f" faults: {hits}\ngaps reported: {dict(record.gaps)}\nconnections lost: {dict(record.connections_lost)}"
        f"\ndropped: {dict(record.dropped)}"
    )
    report.assert_clean()
    assert report.compared["changes"] >= CHANGES
    assert all(hits.values())
    assert report.received["changes"] > report.in_gaps["changes"]


async def shortly(seconds):
    """Wait at most for a quarter of what a fault lasts: connections that end soon are tried again later each time."""
    await asyncio.sleep(min(seconds, FAULTY_S / 8))


async def run(sandbox, signer, tickers, record):
    """Play rounds of one fault each until enough has changed; return how many, and how many books were compared."""
    control, dice = Control(sandbox), random.Random(17)
    nudge = control.trade_a_moment
    rounds = 0
    async with Follower(sandbox, signer, tickers, record, nudge=nudge, sleep=shortly) as follower:
        while rounds < len(FAULTS) or sum(record.changes.values()) < CHANGES:
            names = [[*FAULTS][rounds]] if rounds < len(FAULTS) else dice.sample([*FAULTS], dice.randint(1, 3))
            await control.clear()
            await asyncio.sleep(CALM_S)
            await control.plan(*(fault for name in names for fault in FAULTS[name]))
            await asyncio.sleep(FAULTY_S)
            # Most strike by chance.
            await asyncio.to_thread(until, lambda: all(fault.hits for fault in sandbox.faults.planned))
            await control.clear()
            await control.plan(PAUSE)
            await follower.settle()
            rounds += 1
    await control.http.aclose()
    return rounds, follower.compared
