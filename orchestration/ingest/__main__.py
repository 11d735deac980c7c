"""python -m orchestration.ingest: run the feed without Dagster; each observation is a line of JSON on stdout."""

import sys

from config import settings
from config.exchanges import EXCHANGES
from orchestration.feeds import standalone
from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.exchanges.opening import client_of
from orchestration.ingest.feed import LiveFeed


def main() -> int:
    """Run one feed from the settings in the environment."""
    configured = settings.get()
    parser = standalone.arguments("live", configured.live_window_s)
    parser.add_argument("--exchange", default="polymarket", choices=[*EXCHANGES])
    parser.add_argument("--shard", type=Shard.parse, default=WHOLE, metavar="2/4", help="which part of the markets")
    parser.add_argument("--settle", type=float, default=20.0, help="seconds until settled trades are listed")
    given = parser.parse_args()
    exchange = client_of(EXCHANGES[given.exchange], configured)
    return standalone.run(
        "live",
        configured,
        given.run_id,
        lambda url: LiveFeed(
            configured,
            url,
            exchange,
            run_id=given.run_id,
            feed=given.exchange,
            shard=given.shard,
            window_s=given.window,
            settle_s=given.settle,
            observe_s=given.observe,
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
