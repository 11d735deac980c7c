"""Suites for outgoing data: webhook messages and files."""

from __future__ import annotations

from orchestration.quality.expecting import (
    SIZE_MAX,
    Suite,
    amount,
    between,
    holds,
    not_ahead,
    of_length,
    one_of,
)

DELIVERY = (
    Suite(
        "webhook_deliveries",
        "delivery",
        "webhook_deliveries",
        (
            one_of("state", "waiting", "delivered", "failed"),
            holds(
                "ended",
                "A delivery has ended exactly if it is not waiting.",
                "(state = 'waiting') = (ended_at is null)",
            ),
            holds("times", "It did not end before it was created.", "ended_at is null or ended_at >= created_at"),
            holds("body", "It has a body, a JSON object.", "left(body, 1) = '{' and right(body, 1) = '}'"),
            between("attempts", 0, 100, severity="warn"),
            holds("attempted", "A delivered message has at least one attempt.", "state <> 'delivered' or attempts > 0"),
            not_ahead("created_at"),
        ),
    ),
    Suite(
        "exports",
        "delivery",
        "export_trades",
        (
            amount("rows", severity="warn"),
            between("bytes", 1, SIZE_MAX, severity="warn"),
            of_length("sha256", 32).at("warn"),
            holds(
                "file",
                "The file is in the folder of its topic and day.",
                "starts_with(file, topic || '/' || to_char(day, 'YYYY-MM-DD') || '/')",
                severity="warn",
            ),
            holds(
                "alike",
                "The files of a part have the same number of rows.",
                """
                not exists (
                    select from exports e
                    where (e.topic, e.day, e.part) = (fresh.topic, fresh.day, fresh.part) and e.rows <> fresh.rows
                )
                """,
                severity="warn",
            ),
            not_ahead("created_at", severity="warn"),
        ),
    ),
)
