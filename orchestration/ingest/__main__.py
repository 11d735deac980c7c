"""python -m orchestration.ingest: run the feed without Dagster; each observation is a line of JSON on stdout."""

import sys

from config import settings
from orchestration.feeds import standalone
from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.exchange import ExchangeClient
from orchestration.ingest.feed import LiveFeed


def main() -> int:
    """Run one feed from the settings in the environment."""
    configured = settings.get()
    parser = standalone.arguments("live", configured.live_window_s)
    parser.add_argument("--feed", default="polymarket")
    parser.add_argument("--shard", type=Shard.parse, default=WHOLE, metavar="2/4", help="which part of the markets")
    parser.add_argument("--settle", type=float, default=20.0, help="seconds until settled trades are listed")
    given = parser.parse_args()
    exchange = ExchangeClient(
        configured.gamma_url,
        configured.clob_url,
        configured.clob_socket_url,
        configured.data_api_url,
        configured.source,
    )
    return standalone.run(
        "live",
        configured,
        given.run_id,
        lambda url: LiveFeed(
            configured,
            url,
            exchange,
            run_id=given.run_id,
            feed=given.feed,
            shard=given.shard,
            window_s=given.window,
            settle_s=given.settle,
            observe_s=given.observe,
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
