"""Both exchanges' feeds under faults: nothing is lost or doubled, and what strikes one leaves the other alone.

`PRESAGE_SOAK_TIMES` is how often each of the eight faults strikes, in random order.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from cli.stack.ports import choose
from orchestration.ingest.gaps.starts import LISTED
from tests.soak import kalshi_truth, truth
from tests.soak.running import RunningDemo

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEED = int(os.environ.get("PRESAGE_SOAK_SEED", "1"))
TIMES = int(os.environ.get("PRESAGE_SOAK_TIMES", "3"))
RATE = os.environ.get("PRESAGE_SOAK_RATE", "150")  # messages a second, of each
WINDOW_S = "5400"  # runs do not hand over by themselves: whatever changes is by a fault
RECOVERY_S = 120.0
MAX_PAUSE_S = 15.0  # a lease tells each second how far its run has come; processes that start take all of two cores
DISCOVERED_S = 120  # after its listing a market is known: new ones are looked for every minute
OTHER = {"polymarket": "kalshi", "kalshi": "polymarket"}
BEGUN = "select bool_and(recorded_since(exchange) is not null) from unnest(%s::text[]) as exchange"
GAPS = """
select g.exchange, g.kind, m.market_id, g.cause, as_ms(g.from_ts), as_ms(coalesce(g.to_ts, now())), g.to_ts is null
from coverage_gaps g left join markets m using (market_key)
"""
UNFILLED = """
select count(*) from coverage_gaps g join unnest(%s::text[], %s::bigint[]) as e (exchange, ended) using (exchange)
where g.kind = 'trades' and g.filled_at is null and as_ms(g.from_ts) <= e.ended
"""
STATUSES = """
{ runsOrError(filter: {pipelineName: "%s"}) { ... on Runs { results { status } } } }
"""


class Fault(NamedTuple):
    """A fault, and the exchange that it strikes; None: both. `victim` returns the pid of what `signal` goes to."""

    name: str
    exchange: str | None
    victim: Callable[[RunningDemo], int]
    signal: signal.Signals = signal.SIGKILL


def of_exchange(exchange: str) -> list[Fault]:
    return [
        Fault(f"{exchange}: {what}", exchange, lambda demo, r=role: demo.lease(r, exchange).pid, sign)
        for what, role, sign in (
            ("kill -9 of the leader", "leader", signal.SIGKILL),
            ("kill -9 of the standby", "standby", signal.SIGKILL),
            ("hand-over", "leader", signal.SIGTERM),
        )
    ]


def of_service(name: str) -> Fault:
    return Fault(f"kill -9 of the {name}", None, lambda demo: demo.pid(name))


FAULTS = [*of_exchange("polymarket"), *of_exchange("kalshi"), of_service("code-server"), of_service("database")]


class Untouched:
    """Watches an exchange that a fault must leave alone: its runs, its gaps and its progress."""

    def __init__(self, demo: RunningDemo, exchange: str) -> None:
        self.demo, self.exchange = demo, exchange
        self.runs, self.gaps = self._runs(), self._gaps()
        self.longest_s, self._written_ms, self._moved_at = 0.0, demo.committed_ms(exchange), time.monotonic()

    def look(self) -> None:
        """Note for how long it has committed nothing; its lease says so each second."""
        now, written_ms = time.monotonic(), self.demo.committed_ms(self.exchange)
        self.longest_s = max(self.longest_s, now - self._moved_at)
        if written_ms > self._written_ms:
            self._written_ms, self._moved_at = written_ms, now

    def assert_untouched(self) -> None:
        moved_at = self._moved_at
        while self._moved_at == moved_at:  # a stall shows when it is over
            assert time.monotonic() - moved_at < RECOVERY_S, f"{self.exchange} commits nothing"
            self.look()
            time.sleep(0.2)
        assert self._runs() == self.runs
        assert self._gaps() == self.gaps
        assert self.longest_s < MAX_PAUSE_S

    def _runs(self) -> set[tuple[str, str]]:
        return {(lease.run_id, lease.role) for lease in self.demo.leases() if lease.exchange == self.exchange}

    def _gaps(self) -> set[Any]:
        with self.demo.connect() as conn:
            return {gap[:4] for gap in conn.execute(GAPS) if gap[0] == self.exchange and gap[3] != LISTED}


def pids(demo: RunningDemo) -> set[int]:
    """Return the pids of the runs and of the services; a struck one goes when its successor is known."""
    services = {service["pid"] for service in demo.running()["services"].values()}
    return services | {lease.pid for lease in demo.leases()}


def strike(demo: RunningDemo, fault: Fault) -> str:
    """Let a fault strike and wait until everything is whole; return what happened."""
    other = fault.exchange and Untouched(demo, OTHER[fault.exchange])
    struck, victim = time.monotonic(), fault.victim(demo)
    os.kill(victim, fault.signal)
    while victim in pids(demo) or not demo.whole():
        assert time.monotonic() - struck < RECOVERY_S, f"not whole again:\n{demo.log_text()[-4000:]}"
        assert demo.process.poll() is None, demo.log_text()[-4000:]
        if other:
            other.look()
        time.sleep(0.2)
    took = f"{fault.name}: whole again after {time.monotonic() - struck:.1f} s"
    if not other:
        return took
    other.assert_untouched()
    return f"{took}; the other's progress was at most {other.longest_s:.1f} s old"


class Gaps:
    """The recorded gaps of one exchange."""

    def __init__(self, rows: list[tuple[Any, ...]], exchange: str) -> None:
        self.rows = [row for row in rows if row[0] == exchange]

    def listing(self, ticker: str, ts_ms: int) -> bool:
        """Return whether an instant lies in the gap of the books of a market from its listing."""
        return any(
            (kind, market, cause) == ("books", ticker, LISTED) and from_ms <= ts_ms <= to_ms
            for _, kind, market, cause, from_ms, to_ms, _ in self.rows
        )

    def open(self) -> list[Any]:
        """Return those that are not over, but of markets that may be listed at this very moment."""
        return [row for row in self.rows if row[-1] and row[3] != LISTED]


@pytest.mark.soak
@pytest.mark.timeout(5400)
def test_what_strikes_one_exchange_leaves_the_other_alone_and_nothing_of_either_is_lost(tmp_path):
    order = FAULTS * TIMES
    dice = random.Random(SEED)
    dice.shuffle(order)
    base = choose(None).api
    options = ("--rate", RATE, "--markets", "40", "--simulate", str(SEED), "--port-base", str(base))
    demo = RunningDemo(tmp_path, *options, exchanges=("polymarket", "kalshi"), PRESAGE_LIVE_WINDOW_S=WINDOW_S)
    try:
        demo.wait_until(lambda: demo.output_json().get("time_to_first_price_s") is not None and demo.whole(), 240)
        demo.wait_until(lambda: truth.announced(demo.truth) <= with_books(demo), 240)
        with demo.connect() as conn:
            demo.wait_until(lambda: conn.execute(BEGUN, [[*demo.exchanges]]).fetchone() == (True,), RECOVERY_S)
        began = {name: demo.exchange(name)["clock_ms"] + 1 for name in demo.exchanges}
        for nth, fault in enumerate(order, 1):
            time.sleep(dice.uniform(2, 5))
            demo.wait_until(demo.whole, RECOVERY_S)
            print(f"{nth}. {strike(demo, fault)}", flush=True)
        ended = {name: demo.exchange(name)["clock_ms"] - 1 for name in demo.exchanges}
        demo.wait_until(lambda: all(demo.committed_ms(name) > ended[name] for name in ended), RECOVERY_S)
        statuses = {
            job: Counter(run["status"] for run in demo.graphql(STATUSES % job)["runsOrError"]["results"])
            for job in ("live", "live_kalshi")
        }
        with demo.connect() as conn:
            listed = kalshi_truth.listed(kalshi_log(demo), ended["kalshi"])
            demo.wait_until(lambda: listed <= kalshi_truth.followed(conn), DISCOVERED_S)
            demo.wait_until(  # also of markets that were found late
                lambda: conn.execute(UNFILLED, [[*ended], [*ended.values()]]).fetchone() == (0,), RECOVERY_S
            )
            gaps = conn.execute(GAPS).fetchall()
            quarantined = conn.execute("select count(*) from quarantine").fetchone()
            found = {
                "polymarket": polymarket(conn, demo, began["polymarket"], ended["polymarket"]),
                "kalshi": kalshi(conn, demo, began["kalshi"], ended["kalshi"]),
            }
    finally:
        demo.stop()

    for exchange, differences in found.items():
        for kind, difference in differences.items():
            print(f"{exchange}, {kind}: {difference}")
        causes = Counter((gap[1], gap[3]) for gap in gaps if gap[0] == exchange)
        print(f"{exchange}, gaps: {dict(causes)}; Dagster's runs: {dict(statuses['live'])}, {statuses['live_kalshi']}")
    for exchange, differences in found.items():
        kept = Gaps(gaps, exchange)
        assert not kept.open()
        for kind, difference in differences.items():
            assert difference.compared > 1_000, (exchange, kind)
            assert not difference.doubled, (exchange, kind, difference.doubled.most_common(3))
            lost = [
                row
                for row in difference.lost
                if kind == "trades" or not kept.listing(row[0].rpartition(":")[0], row[1])
            ]
            assert not lost, (exchange, kind, lost[:3])
    assert quarantined == (0,)
    for job, counts in statuses.items():
        assert counts["FAILURE"] >= 2 * TIMES, (job, counts)
        assert counts["STARTED"] == 2, (job, counts)
    demo.erase()


def kalshi_log(demo: RunningDemo) -> Path:
    return demo.truth.with_name(f"{demo.truth.name}.kalshi")


def with_books(demo: RunningDemo) -> set[str]:
    with demo.connect() as conn:
        rows = conn.execute("select token_id from tokens where market_key in (select market_key from book_events)")
        return {token_id for (token_id,) in rows}


def polymarket(conn, demo: RunningDemo, from_ms: int, to_ms: int) -> dict[str, truth.Difference]:
    found = {kind: of_polymarket(rows) for kind, rows in truth.stored(conn, from_ms=from_ms, to_ms=to_ms).items()}
    return truth.compare(truth.sent(demo.truth, from_ms=from_ms, to_ms=to_ms), found)


def of_polymarket(rows: Counter[Any]) -> Counter[Any]:
    """Leave out Kalshi's rows, whose tokens are a ticker and an outcome."""
    return Counter({row: count for row, count in rows.items() if ":" not in row[0]})


def kalshi(conn, demo: RunningDemo, from_ms: int, to_ms: int) -> dict[str, truth.Difference]:
    expected = kalshi_truth.sent(kalshi_log(demo), kalshi_truth.followed(conn), from_ms=from_ms, to_ms=to_ms)
    return truth.compare(expected, kalshi_truth.stored(conn, from_ms=from_ms, to_ms=to_ms))
