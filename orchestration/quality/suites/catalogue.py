"""Suites for the catalogue."""

from __future__ import annotations

from config.exchanges import EXCHANGES
from orchestration.quality.expecting import Suite, amount, between, holds, not_ahead, one_of

STAGE, ASSET = "discovery", "markets"
IDS = " ".join(f"when '{each.name}' then market_id ~ '{each.market_id}'" for each in EXCHANGES.values())
STATES = ("ACTIVE", "CLOSED", "RESOLVED")

CATALOGUE = (
    Suite(
        "market_status_changes",
        STAGE,
        ASSET,
        (
            one_of("to_status", *STATES),
            one_of("from_status", *STATES),
            holds(
                "changed",
                "The state after is not the one before.",
                "from_status is distinct from to_status",
                severity="warn",
            ),
            holds("cause", "A change has a cause.", "cause <> ''", severity="warn"),
            not_ahead(),
        ),
        by="number",
        most=20_000,
    ),
    Suite(
        "markets",
        STAGE,
        ASSET,
        (
            holds(
                "market_id",
                "`market_id` is as its exchange writes it: Polymarket 0x and 64 hex digits, Kalshi a ticker.",
                f"case exchange {IDS} else false end",
            ),
            one_of("status", *STATES),
            holds(
                "outcomes",
                "A market has at least one outcome, and as many tokens and prices as outcomes, if any.",
                """
                cardinality(outcomes) >= 1 and cardinality(token_ids) in (0, cardinality(outcomes))
                and cardinality(outcome_prices) in (0, cardinality(outcomes))
                """,
            ),
            holds(
                "tokens",
                "Each token belongs to the market, and to the outcome at its position.",
                """
                not exists (
                    select from unnest(fresh.token_ids) with ordinality as listed (token_id, nth)
                    left join tokens t using (token_id)
                    where (t.market_key, t.outcome + 1) is distinct from (fresh.market_key, listed.nth)
                )
                """,
            ),
            holds(
                "outcome_prices",
                "Prices are within 0 and 1; those of an open market's two outcomes add up to 1, within two cents.",
                """
                not (0 > any(outcome_prices)) and not (1000000 < any(outcome_prices)) and (
                    status <> 'ACTIVE' or cardinality(outcome_prices) <> 2
                    or abs(outcome_prices[1] + outcome_prices[2] - 1000000) <= 20000
                )
                """,
                severity="warn",
            ),
            holds(
                "winner",
                "Only a resolved market has a winner; it is one of the outcomes, and is paid.",
                """
                winning_outcome is null or (
                    status = 'RESOLVED' and winning_outcome >= 0 and winning_outcome < cardinality(outcomes)
                    and coalesce(outcome_prices[winning_outcome + 1], 1000000) >= 500000
                )
                """,
            ),
            amount("volume_usd", severity="warn"),
            amount("volume_24h_usd", severity="warn"),
            amount("liquidity_usd", severity="warn"),
            between("tick_size", 1, 500_000, severity="warn"),
            holds(
                "event",
                "The market's event is known.",
                "event_id is null or exists (select from events e where e.event_id = fresh.event_id)",
                severity="warn",
            ),
            not_ahead("updated_at"),
        ),
        by="number",
        most=20_000,
        by_market=True,
    ),
    Suite(
        "events",
        STAGE,
        ASSET,
        (
            holds("event_id", "An event has a name.", "event_id <> ''"),
            holds(
                "tags",
                "No tag is empty.",
                "array_position(tags, null) is null and not ('' = any(tags))",
                severity="warn",
            ),
            not_ahead("updated_at"),
        ),
    ),
)
