"""python -m tests.cluster [--losses N] [--only KIND…] [--json FILE]: three hosts, of which one after another is lost.

Each host is a network namespace with etcd, PostgreSQL by Patroni, HAProxy and `presage up`: all have the feed and the
API, two Dagster, one of these the site, and two execute its runs. A sandbox exchange plays into them; a writer, a
client of the API and subscribers of the stream use them through one proxy. A host is killed as a whole, or its cable
is pulled; then it comes back, before or after others have taken over. The loss of a host that has the primary and
leads the feed counts as one of each kind. In the end all that was acknowledged, sent or counted is compared with what
the database and the clients have. Needs root.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from tests.api.conftest import generous
from tests.cluster import load
from tests.cluster.cluster import ENTRY_PORT, KINDS, PARTITION, Cluster, Loss
from tests.cluster.deviations import READER, deviations
from tests.patience import until
from tests.soak.subscribers import Subscriber, Subscribers

if TYPE_CHECKING:
    from collections.abc import Callable

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
CUT_S = 40.0
AWAY_S = 2.0, 30.0  # a lost host comes back before or after Patroni's 20 s


def _end(*_: object) -> None:
    """End, and take everything down in peace."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    sys.exit(1)


def main() -> int:
    """Build the hosts, lose them in turns, audit, and take everything down; 1 if anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__.partition("\n")[0])
    parser.add_argument("--losses", type=int, default=1, metavar="N", help="of each kind, at least (1)")
    parser.add_argument("--only", action="append", choices=KINDS, metavar="KIND", help=f"of: {', '.join(KINDS)} (all)")
    parser.add_argument("--rate", type=int, default=60, help="events a second of the exchange (60)")
    parser.add_argument("--markets", type=int, default=20, help="of the exchange (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the order of losses and the times away (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every loss and the figures")
    given = parser.parse_args()
    for number in ENDING:
        signal.signal(number, _end)
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {line}", flush=True)

    losses, found, figures = lose_all(given, say)
    for name, figure in figures.items():
        say(f"{name}: {figure:,}" if isinstance(figure, int) else f"{name}: {figure}")
    for what in ("without_writes_s", "without_reads_s", "recovered_s"):
        for kind in given.only or KINDS:
            of = sorted(getattr(loss, what) for loss in losses if loss.kind == kind)
            if not of:
                continue
            p99 = of[min(len(of) - 1, len(of) * 99 // 100)]
            say(f"{what} {kind}: p50 {statistics.median(of):.1f}, p99 {p99:.1f}, most {of[-1]:.1f} ({len(of)} losses)")
    if given.json:
        given.json.write_text(json.dumps({"losses": [loss._asdict() for loss in losses], **figures, "faults": found}))
    for fault in found:
        say(f"FAULT {fault}")
    return 1 if found else 0


def lose_all(given: argparse.Namespace, say: Callable[[str], None]) -> tuple[list[Loss], list[str], dict[str, Any]]:
    """Run a cluster under load, lose hosts as often as is asked for; return the losses, deviations and figures."""
    losses: list[Loss] = []
    dice = random.Random(given.seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="presage-cluster-")))
        folder.chmod(0o755)
        cluster = Cluster(stack, folder, rate=given.rate, markets=given.markets)
        stack.push(lambda kind, *_: cluster.say_logs(say) if kind not in {None, SystemExit} else None)
        cluster.start(say)
        with psycopg.connect(cluster.url, autocommit=True) as conn:
            key = generous(conn, READER, max_connections=100, credits_month=10**12)
            stream_key = generous(conn, "stream@example.com", max_connections=100, credits_month=10**12)
        entry = f"http://{cluster.entry}:{ENTRY_PORT}"
        writer, reader = load.Writer(cluster.url, 0.02), load.Reader(entry, key, 0.05)
        listeners = [Subscriber(stream_key, frozenset(), None, None, frozenset()) for _ in range(3)]
        streams = Subscribers(entry, listeners, 1)
        streams.reconnecting = False
        for thread in (writer, reader, streams):
            thread.start()
            stack.callback(thread.stop)
        until(lambda: writer.acknowledged and reader.answered and all(each.received for each in listeners))
        done: Counter[str] = Counter()
        while missing := [kind for kind in given.only or KINDS if done[kind] < given.losses]:
            kind = dice.choice(missing)
            away_s = CUT_S if kind == PARTITION else dice.uniform(*AWAY_S)
            losses.append(last := cluster.lose(kind, away_s, writer, reader))
            done.update(last.losses)
            say(
                f"{len(losses)}: {last.kind} ({last.host}: {', '.join(last.losses)}), away for {away_s:.0f} s:"
                f" {last.without_writes_s:.1f} s without writes, {last.without_reads_s:.1f} s without reads,"
                f" whole after {last.recovered_s:.0f} s; lost until now:"
                f" {', '.join(f'{number} {each}' for each, number in sorted(done.items()))} of {given.losses}"
            )
        writer.stop()
        reader.stop()
        return losses, *deviations(cluster, writer, reader, streams)


if __name__ == "__main__":
    sys.exit(main())
