"""Decode benchmark: our log decoder beside web3.py's process_log, on the same logs, in turns, by CPU time.

web3.py gets logs as it parses them from a node's response, each passed to its own contract event. We get ours as we
parse them from the same response, and recognise by a transfer's topics alone when it is part of a match that the
fills cover. The last figure starts from the response's bytes, for both. CPU time is measured, as both use one core,
and other load on the machine then does not matter.
"""

from __future__ import annotations

import json
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.chain import logs as decode_logs
from benchmarks.figures import Target, figure
from benchmarks.harness import interleaved
from upstream.chain.contracts import POLYGON
from upstream.chain.decode import decode
from upstream.chain.topics import EVENTS, EventType
from upstream.chain.wire import RawLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.figures import Figure
    from benchmarks.harness import Options

LOGS = 4000
PASSES = 25
"""Runs of ours over the same logs in one turn, for clock resolution."""
RATIO = Target("ratio", ">=", 40)
INDEXED = {
    EventType.FILL_V1: 3,
    EventType.FILL_V2: 3,
    EventType.MATCHED: 2,
    EventType.TRANSFER: 3,
    EventType.TRANSFERS: 3,
    EventType.NOTHING: 1,
}
"""Number of an event's leading inputs that are indexed; for the others see `PLACES`."""
PLACES = {EventType.SPLIT: (0, 2, 3), EventType.REDEMPTION: (0, 1, 2)}

_answer = msgspec.json.Decoder(list[RawLog])


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure fills, a mix of all, and the mix starting from the response's bytes."""
    log_entry_formatter = web3().method_formatters.log_entry_formatter
    events = rivals()
    for name, logs in (("OrderFilled", decode_logs.fills(LOGS)), ("a busy hour's mix", decode_logs.mixed(LOGS))):
        raw = msgspec.convert(logs, list[RawLog])
        formatted = [log_entry_formatter(log) for log in logs]
        ours, theirs = both_read(raw, formatted, events)
        assert ours == theirs
        yield from taken_in_turns(
            f"logs decoded: {name}",
            len(logs),
            lambda raw=raw: decode(raw, POLYGON),  # type: ignore[misc]
            lambda formatted=formatted: [process(log, events) for log in formatted],  # type: ignore[misc]
            options=options,
            report=report,
        )
    answer = msgspec.json.encode(logs)
    yield from taken_in_turns(
        "the same from a node's answer on",
        len(logs),
        lambda: decode(_answer.decode(answer), POLYGON),
        lambda: [process(log_entry_formatter(log), events) for log in json.loads(answer)],
        options=options,
        report=report,
    )


def taken_in_turns(
    name: str,
    logs: int,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    options: Options,
    report: Callable[[str], None],
) -> Iterator[Figure]:
    """Measure both, in logs per second."""

    def rate(work: Callable[[], Any], passes: int) -> Callable[[], float]:
        def sample() -> float:
            began = time.process_time()
            for _ in range(passes):
                work()
            return passes * logs / (time.process_time() - began)

        return sample

    medians = interleaved(
        {name: rate(ours, PASSES), "web3.py process_log": rate(theirs, 1)}, options.repetitions, report
    )
    mine, rival = medians.values()
    yield figure(name, mine, "logs/s", rival=("web3.py process_log", rival), target=RATIO)


def web3() -> SimpleNamespace:
    """Import web3.py, and restore the recursion limit, which it raises beyond what the C stack holds."""
    limit = sys.getrecursionlimit()
    from web3 import Web3
    from web3._utils import method_formatters

    sys.setrecursionlimit(limit)  # at py_ecc's 100,000 a deeply nested JSON document ends the process
    return SimpleNamespace(Web3=Web3, method_formatters=method_formatters)


def rivals() -> dict[str, Any]:
    """Return web3.py's events, by topic 0."""
    client = web3().Web3()
    made = {}
    for event in EVENTS:
        if event.event_type in INDEXED or event.event_type in PLACES:
            name, _, types = event.signature.rstrip(")").partition("(")
            indexed = PLACES.get(event.event_type, range(INDEXED.get(event.event_type, 0)))
            inputs = [
                {"name": f"input{number}", "type": kind, "indexed": number in indexed}
                for number, kind in enumerate(types.split(","))
            ]
            described = {"type": "event", "name": name, "anonymous": False, "inputs": inputs}
            made[event.topic0] = getattr(client.eth.contract(abi=[described]).events, name)()
    return made


def process(log: Any, events: dict[str, Any]) -> Any:
    """Decode one log with web3.py."""
    return events[log["topics"][0].to_0x_hex()].process_log(log)


def both_read(raw: list[RawLog], formatted: list[Any], events: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return the fills as decoded by us and by web3.py, to verify that they match before measuring speed."""
    made = decode(raw, POLYGON)
    assert made.counts["refused"] == 0, made.refused
    fills = made.fills
    makers = (maker.item().hex() for maker in fills.maker)
    columns = (each.tolist() for each in (fills.block_number, fills.log_index, fills.side, fills.size, fills.value))
    ours = list(zip(makers, *columns, strict=True))
    theirs = []
    for log in formatted:
        event = process(log, events)
        if event["event"] == "OrderFilled":
            args = list(event["args"].values())
            buys = (args[3] == 0) if len(args) == 8 else not args[3]
            value, size = args[5:7] if buys else args[6:4:-1]
            side = 1 if buys else -1
            theirs.append((args[1][2:].lower(), event["blockNumber"], event["logIndex"], side, size, value))
    return sorted(ours), sorted(theirs)
