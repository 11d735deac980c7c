"""Suites for computed tables: candles, statistics, rankings, book anchors, signals."""

from __future__ import annotations

from orchestration.quality.expecting import (
    Check,
    Suite,
    amount,
    between,
    holds,
    no_rows,
    not_ahead,
    of_market,
    one_of,
    price,
    unique,
    whole_book,
)

STAGE = "aggregates"
SIGNALS = ("momentum", "volume_spike", "whale_alert", "spread_widening", "book_imbalance", "price_reversal")


def _candle(width: str) -> tuple[Check, ...]:
    return (
        price("low"),
        price("high"),
        holds(
            "range",
            "Open and close lie within low and high.",
            "low <= least(open, close) and greatest(open, close) <= high",
        ),
        amount("volume", least=1),
        between("trades", 1, 10**9),
        holds(
            "worth",
            "The USD value is between volume times low and volume times high.",
            """
            value_usd * 1000000::numeric
                between volume::numeric * low - 500000 * trades and volume::numeric * high + 500000 * trades
            """,
        ),
        holds("places", "The first trade is not after the last.", "first_seq <= last_seq"),
        holds("aligned", f"A candle begins at a full {width}.", f"bucket = time_bucket('1 {width}', bucket)"),
        of_market(),
        not_ahead("bucket"),
    )


AGGREGATES = (
    Suite(
        "candles_1m",
        STAGE,
        "candles_1m",
        (
            *_candle("minute"),
            no_rows("of_trades", "A past minute's candle equals its trades.", "minutes_unlike_trades"),
            no_rows("none_missing", "A minute with trades has a candle.", "minutes_missing"),
        ),
        by_market=True,
    ),
    Suite(
        "candles_1h",
        STAGE,
        "candles_1h",
        (*_candle("hour"), no_rows("of_minutes", "An hour's candle equals its minutes.", "hours_unlike_minutes")),
        by_market=True,
    ),
    Suite(
        "market_stats_24h",
        STAGE,
        "market_stats_24h",
        (
            holds(
                "range",
                "Open and close lie within low and high.",
                "low <= least(open, close) and greatest(open, close) <= high",
            ),
            price("low"),
            price("high"),
            amount("volume", least=1),
            between("trades", 1, 10**9),
            holds("window", "The window has 24 hours.", "window_end - window_start = interval '24 hours'"),
            of_market(),
            not_ahead("computed_at"),
        ),
        by_market=True,
    ),
    Suite(
        "market_activity",
        STAGE,
        "market_activity",
        (
            holds(
                "periods",
                "A day has no less than its last hour, and a week no less than its last day.",
                """
                value_1h >= 0 and value_1h <= value_24h and value_24h <= value_7d
                and trades_1h >= 0 and trades_1h <= trades_24h and trades_24h <= trades_7d
                """,
            ),
            price("price_now"),
            price("price_baseline"),
            holds(
                "move",
                "The move is from the baseline to now.",
                "price_move is not distinct from price_now - price_baseline",
            ),
            of_market(outcome=False),
            not_ahead("computed_at"),
        ),
        by_market=True,
    ),
    Suite(
        "market_rankings",
        STAGE,
        "market_rankings",
        (
            unique("once", "market_key"),
            no_rows("ranked", "Ranks are consecutive.", "ranks_missing"),
            of_market(outcome=False),
        ),
        by="whole",
    ),
    Suite("book_anchors", STAGE, "book_anchors", (*whole_book(), of_market(), not_ahead()), by_market=True),
    Suite(
        "signals",
        "analysis",
        "signals",
        (
            one_of("type", *SIGNALS),
            holds(
                "score",
                "The score is the value over the threshold, and no less than 1.",
                "threshold > 0 and score >= 1 and abs(score - value / threshold) <= 0.000001 * score",
            ),
            one_of("direction", 1, -1),
            between("window_s", 0, 86_400),
            of_market(),
            not_ahead(),
            holds("found", "A signal is not found before its timestamp.", "found_at >= ts - interval '10 minutes'"),
            holds("detail", "The figures behind it are present.", "detail <> '{}'::jsonb"),
        ),
    ),
)
