"""Suites for the tables of the live feed."""

from __future__ import annotations

from orchestration.quality import stream_rows
from orchestration.quality.expecting import (
    PRICE_MAX,
    SIZE_MAX,
    Suite,
    amount,
    between,
    holds,
    in_order,
    no_rows,
    not_ahead,
    of_length,
    of_market,
    one_of,
    price,
    whole_book,
)

STAGE = "ingestion"
WITHIN = PRICE_MAX - 1

_MID = holds(
    "mid",
    "`mid` is the mean of the best prices, and null if one is missing.",
    "mid is not distinct from (bid + ask) / 2",
)
_NOT_CROSSED = holds("not_crossed", "The best bid is below the best ask.", "bid < ask or bid is null or ask is null")
_SIZES = holds(
    "sizes",
    "A best price has a size above 0.",
    "(bid is null or bid_size is null or bid_size > 0) and (ask is null or ask_size is null or ask_size > 0)",
)

FEED = (
    Suite(
        "trades",
        STAGE,
        "trades",
        (
            price("price"),
            amount("size", least=1),
            one_of("side", 1, -1),
            holds(
                "worth",
                "`value_usd` is price times size, rounded.",
                "abs(value_usd::numeric * 1000000 - price::numeric * size) <= 500000",
            ),
            of_length("tx_hash", 32).at("warn"),
            of_market(),
            not_ahead(),
            in_order(),
            no_rows("once", "No trade is stored twice with different timestamps.", "trades_twice"),
            no_rows(
                "within_book",
                "Prices are within two cents of the book around that time, if it was received; three, or a tenth, may "
                "differ.",
                "trades_outside_book",
                severity="warn",
            ),
        ),
        by_market=True,
    ),
    Suite(
        "quotes",
        STAGE,
        "quotes",
        (price("bid", most=WITHIN), price("ask", most=WITHIN), _SIZES, _NOT_CROSSED, _MID, of_market(), not_ahead()),
        by_market=True,
    ),
    Suite(
        "book_events",
        STAGE,
        "book_events",
        (
            price("price", most=WITHIN),
            amount("size"),
            one_of("side", 1, -1),
            holds(
                "shape",
                "A row is either a level's change, or a full book.",
                """
                case
                    when side is null
                        then num_nulls(bid_prices, bid_sizes, ask_prices, ask_sizes) = 0 and num_nulls(price, size) = 2
                    else num_nulls(price, size) = 0 and num_nulls(bid_prices, bid_sizes, ask_prices, ask_sizes) = 4
                end
                """,
            ),
            *whole_book("side is null and num_nulls(bid_prices, bid_sizes, ask_prices, ask_sizes) = 0"),
            of_market(),
            not_ahead(),
            in_order(),
            no_rows("once", "No change is stored twice under different IDs.", "book_events_twice"),
        ),
        by_market=True,
    ),
    Suite(
        "live_prices",
        STAGE,
        "live_prices",
        (
            price("bid", most=WITHIN),
            price("ask", most=WITHIN),
            price("last"),
            _SIZES,
            _NOT_CROSSED,
            _MID,
            of_market(),
            not_ahead(),
            no_rows(
                "complementary",
                "The mid prices of Yes and No add up to 1, within two cents; three pairs, or one in twenty, may "
                "differ.",
                "prices_not_complementary",
                severity="warn",
            ),
        ),
        by_market=True,
    ),
    Suite("live_books", STAGE, "live_books", (*whole_book(), of_market(), not_ahead()), by_market=True),
    Suite(
        "stream_events",
        STAGE,
        "stream_events",
        (
            no_rows("no_gap", "The last million numbers up to the head are complete.", "stream_gaps"),
            holds(
                "message",
                "The message has the row's number and type.",
                """
                substring(message from '"seq": ?([0-9]+)')::numeric = seq
                and substring(message from '"type": ?"([a-z_]+)"') = type
                """,
            ),
            holds(
                "market",
                "The catalogue knows the market.",
                "market_id is null or exists (select from markets m where m.market_id = fresh.market_id)",
            ),
            not_ahead(),
        ),
        by="number",
        most=1_000_000,
        stored_in="stream_blocks",
        lay_out=stream_rows.lay_out,
    ),
    Suite(
        "feed_stats",
        STAGE,
        "trades",
        (
            between("messages", 0, SIZE_MAX, severity="warn"),
            between("rows", 0, SIZE_MAX, severity="warn"),
            holds(
                "lags",
                "The median lag is not above the 99th percentile, nor that (from a histogram) above the maximum.",
                "coalesce(lag_p50_ms <= lag_p99_ms and lag_p99_ms <= lag_max_ms * 1.1 + 10, true)",
                severity="warn",
            ),
            not_ahead(severity="warn"),
        ),
    ),
    Suite(
        "coverage_gaps",
        STAGE,
        "coverage_gaps",
        (
            holds("span", "A gap ends after it began.", "to_ts is null or to_ts >= from_ts", severity="warn"),
            holds("cause", "A gap has a cause.", "cause <> ''", severity="warn"),
            holds(
                "filled",
                "A gap has ended before it is filled.",
                "filled_at is null or to_ts is not null",
                severity="warn",
            ),
            not_ahead("from_ts", severity="warn"),
        ),
    ),
    Suite(
        "coverage_days",
        STAGE,
        "coverage_gaps",
        (
            holds(
                "counts", "No count is below 0.", "least(listed, held, added, unlisted, unknown) >= 0", severity="warn"
            ),
            holds("held", "Listed records that are stored are no more than listed.", "held <= listed", severity="warn"),
            holds(
                "agrees",
                "A day agrees exactly if nothing is missing, unlisted or unknown.",
                "agrees = (held = listed and unlisted = 0 and unknown = 0)",
                severity="warn",
            ),
        ),
    ),
    Suite(
        "coverage_market_days",
        STAGE,
        "coverage_gaps",
        (
            holds("counts", "No count is below 0.", "least(listed, held, added, unlisted) >= 0", severity="warn"),
            holds("held", "Listed trades that are stored are no more than listed.", "held <= listed", severity="warn"),
            of_market(outcome=False).at("warn"),
        ),
    ),
    Suite(
        "tick_sizes",
        STAGE,
        "book_events",
        (
            between("tick_size", 1, 500_000),
            holds("changed", "The tick after is not the one before.", "before is distinct from tick_size").at("warn"),
            of_market(),
            not_ahead(),
        ),
    ),
)
