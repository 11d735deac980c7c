"""python -m orchestration.webhooks: deliver webhooks without Dagster; observations are lines of JSON on stdout."""

import sys

from config import settings
from orchestration.feeds import standalone
from orchestration.webhooks.feed import WebhookFeed


def main() -> int:
    """Run one feed from the settings in the environment."""
    configured = settings.get()
    given = standalone.arguments("delivery", configured.webhook_window_s).parse_args()
    return standalone.run(
        "delivery",
        configured,
        given.run_id,
        lambda url: WebhookFeed(configured, url, run_id=given.run_id, window_s=given.window, observe_s=given.observe),
    )


if __name__ == "__main__":
    sys.exit(main())
