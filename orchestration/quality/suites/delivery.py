"""What holds of what is sent to webhooks."""

from __future__ import annotations

from orchestration.quality.expecting import Suite, between, holds, not_ahead, one_of

DELIVERY = (
    Suite(
        "webhook_deliveries",
        "delivery",
        "webhook_deliveries",
        (
            one_of("state", "waiting", "delivered", "failed"),
            holds(
                "ended",
                "What does not wait has ended, and what waits has not.",
                "(state = 'waiting') = (ended_at is null)",
            ),
            holds("times", "It has not ended before it was made.", "ended_at is null or ended_at >= created_at"),
            holds("body", "It has a body, a JSON object.", "left(body, 1) = '{' and right(body, 1) = '}'"),
            between("attempts", 0, 100, severity="warn"),
            holds("attempted", "What arrived has been tried.", "state <> 'delivered' or attempts > 0"),
            not_ahead("created_at"),
        ),
    ),
)
