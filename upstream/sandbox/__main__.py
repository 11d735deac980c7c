"""`python -m upstream.sandbox`: a sandbox exchange on one port."""

from __future__ import annotations

import argparse
import re

from upstream.sandbox.common.command_line import SandboxParser
from upstream.sandbox.faults import Fault
from upstream.sandbox.server import Sandbox
from upstream.sandbox.simulation.simulation import Burst

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
    parser = SandboxParser("python -m upstream.sandbox", __doc__, EPILOG, port=8650, markets=60)
    parser.add_argument(
        "--past", type=int, default=0, metavar="DAYS", help="simulation: days of history before the start"
    )
    parser.add_argument(
        "--past-until-ms", type=int, metavar="MS", help="when that history ends (default: at the start)"
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
    given = parser.parse_args()
    own = {
        "past_days": given.past,
        "past_until_ms": given.past_until_ms,
        "limits": not given.no_limits,
        "bursts": given.burst,
    }
    shared = parser.shared(given, Fault)
    parser.serve(lambda: Sandbox(**shared, **own), "exchange")


def _burst(given: str) -> Burst:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)x(\d+)s?(?:@(\d+)s?)?", given)
    if found is None:
        raise argparse.ArgumentTypeError(f"not a burst: {given!r}")
    times, for_s, at_s = found.groups()
    return Burst(float(times), float(for_s), float(at_s or 60))


if __name__ == "__main__":
    main()
