"""`python -m upstream.sandbox.kalshi`: a sandbox Kalshi on one port."""

from __future__ import annotations

import argparse
from pathlib import Path

from upstream.sandbox.common.command_line import SandboxParser
from upstream.sandbox.kalshi.faults import KalshiFault
from upstream.sandbox.kalshi.limits import TIERS
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.sandbox.kalshi.signatures import PublicKey, public_key

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
    parser = SandboxParser("python -m upstream.sandbox.kalshi", __doc__, EPILOG, port=8660, markets=200)
    parser.add_argument(
        "--tier", choices=(*TIERS, "none"), default="basic", help="limits of requests (default: %(default)s)"
    )
    parser.add_argument(
        "--key", type=_key, action="append", default=[], metavar="ID=FILE", help="an API key's id and public half (PEM)"
    )
    given = parser.parse_args()
    tier = None if given.tier == "none" else given.tier
    shared = parser.shared(given, KalshiFault)
    parser.serve(lambda: KalshiSandbox(**shared, tier=tier, keys=dict(given.key)), "Kalshi")


def _key(given: str) -> tuple[str, PublicKey]:
    key_id, _, path = given.partition("=")
    try:
        return key_id, public_key(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"not a public key: {error}") from error


if __name__ == "__main__":
    main()
