"""python -m orchestration.settlement: follow the chain without Dagster; observations are lines of JSON on stdout."""

import sys

from config import settings
from orchestration.feeds import standalone
from orchestration.settlement import chain
from orchestration.settlement.feed import SettlementFeed


def main() -> int:
    """Run one feed from the settings in the environment."""
    configured = settings.get()
    given = standalone.arguments("settlement", configured.settlement_window_s).parse_args()
    if not chain.urls(configured):
        print(chain.OFF, file=sys.stderr)
        return 2
    with chain.open_clients(configured) as (rpc, second):
        return standalone.run(
            "settlement",
            configured,
            given.run_id,
            lambda url: SettlementFeed(
                configured,
                url,
                rpc,
                chain.followed(configured),
                run_id=given.run_id,
                second=second,
                window_s=given.window,
                observe_s=given.observe,
            ),
        )


if __name__ == "__main__":
    sys.exit(main())
