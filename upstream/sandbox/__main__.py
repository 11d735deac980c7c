"""`python -m upstream.sandbox`: a sandbox exchange on one port."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import msgspec

from upstream.sandbox.faults import Fault, read_script
from upstream.sandbox.server import Sandbox
from upstream.sandbox.simulation.simulation import Burst
from upstream.sandbox.tape.folder import UnplayableError

EPILOG = """\
The exchange's protocols are served at http://HOST:PORT/gamma, /clob and /data and at ws://HOST:PORT/ws/market; trades
are settled on a simulated chain, JSON-RPC at http://HOST:PORT/rpc. Own endpoints: GET /sandbox/status,
GET /sandbox/tape, GET /sandbox/log?after=N, GET|POST|DELETE /sandbox/faults, POST /sandbox/play and
POST /sandbox/burst.

faults: a fault or a list of them, as JSON or in a file, for instance
  [{"kind": "error", "target": "/gamma", "at_s": 20, "for_s": 5}, {"kind": "silent", "at_s": 40, "for_s": 30},
   {"kind": "drop", "probability": 0.01}, {"kind": "rate_limit", "target": "/clob/books", "for_s": 10},
   {"kind": "reorg", "depth": 5, "at_s": 60}, {"kind": "rpc_error", "error": "response_size", "for_s": 10}]
kinds: error rate_limit hang slow truncate cut html wrong_json repeat oversized; silent close refuse drop duplicate
reorder corrupt_hash corrupt_size; reorg lag rpc_error range_limit missing_logs.
`python -c 'import upstream.sandbox.faults as f; help(f.Fault)'` documents them.
"""


def main() -> None:
    """Parse the arguments and serve until stopped."""
    parser = argparse.ArgumentParser(
        prog="python -m upstream.sandbox",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--simulate", type=int, metavar="SEED", help="simulate markets; the same seed gives the same ones (default: 1)"
    )
    source.add_argument("--tape", type=Path, metavar="DIR", help="play a folder of recordings, time shifted to now")
    parser.add_argument(
        "--port", type=int, default=8650, help="port to listen on; 0 takes a free one (default: %(default)s)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--rate",
        type=float,
        default=200,
        metavar="N",
        help="simulation: price changes and prints a second (default: %(default)s)",
    )
    parser.add_argument(
        "--markets", type=int, default=60, metavar="N", help="simulation: markets at the start (default: %(default)s)"
    )
    parser.add_argument("--start-ms", type=int, metavar="MS", help="the exchange's clock at the start (default: now)")
    parser.add_argument(
        "--past", type=int, default=0, metavar="DAYS", help="simulation: days of history before the start"
    )
    parser.add_argument(
        "--past-until-ms", type=int, metavar="MS", help="when that history ends (default: at the start)"
    )
    parser.add_argument(
        "--speed",
        type=float,
        default=1.0,
        metavar="X",
        help="tape: playback speed factor; 0 is as fast as possible (default: %(default)s)",
    )
    parser.add_argument(
        "--hold", action="store_true", help="play nothing until POST /sandbox/play; recommended with --speed 0"
    )
    parser.add_argument(
        "--burst",
        type=_burst,
        action="append",
        default=[],
        metavar="TIMESxSECONDS[@AT]",
        help="simulation: so many times the rate for so long, in sports events, from second AT (default: 60) on",
    )
    parser.add_argument(
        "--no-limits", action="store_true", help="answer HTTP requests beyond the exchange's published limits"
    )
    parser.add_argument("--faults", metavar="FILE|JSON", help="faults to inject, and when")
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="write every event as a line of JSON: the ground truth to compare with"
    )
    given = parser.parse_args()
    try:
        faults = _script(given.faults)
    except (OSError, msgspec.MsgspecError) as error:
        parser.error(f"--faults: {error}")
    try:
        sandbox = Sandbox(
            simulate=(1 if given.simulate is None else given.simulate) if given.tape is None else None,
            tape=given.tape,
            port=given.port,
            host=given.host,
            rate=given.rate,
            markets=given.markets,
            start_ms=given.start_ms,
            past_days=given.past,
            past_until_ms=given.past_until_ms,
            speed=given.speed,
            hold=given.hold,
            limits=not given.no_limits,
            faults=faults,
            bursts=given.burst,
            log=given.log,
            progress=_say,
        )
    except UnplayableError as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    sandbox.bind()
    _say(
        f"{sandbox.source.source} exchange with {sandbox.exchange.catalogue.counts['markets']} markets at {sandbox.url}"
    )
    sandbox.run()


def _script(given: str | None) -> list[Fault]:
    if given is None:
        return []
    return read_script(given if given.lstrip().startswith(("[", "{")) else Path(given).read_bytes())


def _burst(given: str) -> Burst:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)x(\d+)s?(?:@(\d+)s?)?", given)
    if found is None:
        raise argparse.ArgumentTypeError(f"not a burst: {given!r}")
    times, for_s, at_s = found.groups()
    return Burst(float(times), float(for_s), float(at_s or 60))


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
