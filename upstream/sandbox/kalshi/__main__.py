"""`python -m upstream.sandbox.kalshi`: a sandbox Kalshi on one port."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from upstream.sandbox.common.faults import read_faults
from upstream.sandbox.kalshi.faults import KalshiFault
from upstream.sandbox.kalshi.limits import TIERS
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.sandbox.kalshi.signatures import PublicKey, public_key
from upstream.sandbox.tape.folder import UnplayableError

EPILOG = """\
Kalshi's protocols are served at http://HOST:PORT/trade-api/v2 and ws://HOST:PORT/trade-api/ws/v2. Every WebSocket needs
a signature: POST /sandbox/keys makes a key ({"kind": "rsa"} or {"kind": "ed25519"}), --key names one of yours. Own
endpoints: GET /sandbox/status, GET /sandbox/tape, GET /sandbox/log?after=N, GET|POST|DELETE /sandbox/faults,
POST /sandbox/play and POST /sandbox/keys.

faults: a fault or a list of them, as JSON or in a file, for instance
  [{"kind": "drop", "probability": 0.01, "at_s": 20, "for_s": 5}, {"kind": "silent", "at_s": 40, "for_s": 30},
   {"kind": "pause", "shard": 2, "for_s": 60}, {"kind": "rate_limit", "target": "/trade-api/v2/markets"}]
kinds: error rate_limit hang slow truncate cut html wrong_json repeat oversized; silent close refuse reject_signature
drop duplicate reorder late cut_frame corrupt_size skip_seq repeat_seq end_subscription; pause.
`python -c 'import upstream.sandbox.kalshi.faults as f; help(f.KalshiFault)'` documents them.
"""


def main() -> None:
    """Parse the arguments and serve until stopped."""
    parser = argparse.ArgumentParser(
        prog="python -m upstream.sandbox.kalshi",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--simulate", type=int, metavar="SEED", help="simulate markets (default: 1)")
    source.add_argument("--tape", type=Path, metavar="DIR", help="play a folder of recordings, time shifted to now")
    parser.add_argument("--port", type=int, default=8660, help="port; 0 takes a free one (default: %(default)s)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--rate", type=float, default=200, metavar="N", help="simulation: changed levels and prints a second"
    )
    parser.add_argument("--markets", type=int, default=200, metavar="N", help="simulation: markets at the start")
    parser.add_argument("--start-ms", type=int, metavar="MS", help="the exchange's clock at the start (default: now)")
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="tape: speed; 0 is as fast as possible")
    parser.add_argument("--hold", action="store_true", help="play nothing until POST /sandbox/play")
    parser.add_argument(
        "--tier", choices=(*TIERS, "none"), default="basic", help="limits of requests (default: %(default)s)"
    )
    parser.add_argument(
        "--key", type=_key, action="append", default=[], metavar="ID=FILE", help="an API key's id and public half (PEM)"
    )
    parser.add_argument("--faults", metavar="FILE|JSON", help="faults to inject, and when")
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="write every event as a line of JSON: the ground truth"
    )
    given = parser.parse_args()
    try:
        faults = _script(given.faults)
    except (OSError, msgspec.MsgspecError) as error:
        parser.error(f"--faults: {error}")
    try:
        sandbox = KalshiSandbox(
            simulate=(1 if given.simulate is None else given.simulate) if given.tape is None else None,
            tape=given.tape,
            port=given.port,
            host=given.host,
            rate=given.rate,
            markets=given.markets,
            start_ms=given.start_ms,
            speed=given.speed,
            hold=given.hold,
            tier=None if given.tier == "none" else given.tier,
            keys=dict(given.key),
            faults=faults,
            log=given.log,
            progress=_say,
        )
    except (UnplayableError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    sandbox.bind()
    _say(f"{sandbox.source.source} Kalshi with {len(sandbox.exchange.markets)} markets at {sandbox.url}")
    sandbox.run()


def _script(given: str | None) -> list[KalshiFault]:
    if given is None:
        return []
    return read_faults(KalshiFault, given if given.lstrip().startswith(("[", "{")) else Path(given).read_bytes())


def _key(given: str) -> tuple[str, PublicKey]:
    key_id, _, path = given.partition("=")
    try:
        return key_id, public_key(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"not a public key: {error}") from error


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
