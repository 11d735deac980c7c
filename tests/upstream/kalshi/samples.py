"""The exchange's messages as it documents them, or as they were captured; the longest are cut to what matters."""

import json
from typing import Any

TICKER = "KXFED-27APR-T4.25"
OTHER = "HIGHNY-22DEC23-B53.5"
MARKET = {
    "ticker": TICKER,
    "event_ticker": "KXFED-27APR",
    "market_type": "binary",
    "status": "active",
    "result": "",
    "title": "Will the upper bound of the federal funds rate be above 4.25% in April 2027?",
    "yes_sub_title": "Above 4.25%",
    "no_sub_title": "Above 4.25%",
    "rules_primary": "If the upper bound is above 4.25%, then the market resolves to Yes.",
    "rules_secondary": "",
    "created_time": "2025-10-13T13:50:00Z",
    "open_time": "2025-10-13T14:00:00Z",
    "close_time": "2027-04-28T17:55:00Z",
    "updated_time": "2026-04-09T14:07:28.591885Z",
    "yes_bid_dollars": "0.2700",
    "yes_bid_size_fp": "31.54",
    "yes_ask_dollars": "0.2800",
    "yes_ask_size_fp": "20.00",
    "no_bid_dollars": "0.7200",
    "no_ask_dollars": "0.7300",
    "last_price_dollars": "0.2800",
    "notional_value_dollars": "1.0000",
    "volume_fp": "10155.43",
    "volume_24h_fp": "12.00",
    "open_interest_fp": "2020.47",
    "price_level_structure": "linear_cent",
    "price_ranges": [{"start": "0.0000", "end": "1.0000", "step": "0.0100"}],
    "settlement_timer_seconds": 300,
    "strike_type": "greater",
    "floor_strike": 4.25,
    "expiration_value": "",
}
FINAL = MARKET | {
    "status": "finalized",
    "result": "no",
    "settlement_value_dollars": "0.0000",
    "settlement_ts": "2027-04-28T18:01:00Z",
    "yes_bid_dollars": "0.0000",
    "yes_ask_dollars": "1.0000",
    "yes_bid_size_fp": "0.00",
    "yes_ask_size_fp": "0.00",
}
COMBO = MARKET | {"ticker": "KXMVESPORTS-S2026ABC-0F1", "event_ticker": "KXMVESPORTS-S2026ABC"}
EVENT = {
    "event_ticker": "KXFED-27APR",
    "series_ticker": "KXFED",
    "title": "Fed funds rate in April 2027",
    "sub_title": "Apr 2027",
    "category": "Economics",
    "collateral_return_type": "MECNET",
    "mutually_exclusive": True,
    "exchange_index": 0,
    "last_updated_ts": "2026-08-28T21:35:33.691337Z",
    "settlement_sources": [{"name": "Reuters", "url": "https://www.reuters.com"}],
}
SERIES = {
    "ticker": "KXFED",
    "title": "Federal funds rate",
    "category": "Economics",
    "categories": ["Economics", "World Affairs"],
    "tags": ["Fed", "Interest Rates"],
    "frequency": "custom",
    "fee_type": "quadratic",
    "fee_multiplier": 1,
    "exchange_index": 0,
}
TRADE = {
    "trade_id": "56932642-f55c-41a6-1cad-35b95c27373b",
    "ticker": TICKER,
    "count_fp": "7.77",
    "yes_price_dollars": "0.0300",
    "no_price_dollars": "0.9700",
    "taker_side": "yes",
    "taker_outcome_side": "yes",
    "taker_book_side": "bid",
    "is_block_trade": False,
    "created_time": "2026-06-15T15:48:42.609997Z",
}
ORDERBOOK = {
    "yes_dollars": [["0.1200", "0.47"], ["0.2700", "31.54"]],
    "no_dollars": [["0.7100", "25.00"], ["0.7200", "20.00"]],
}
CANDLE = {
    "end_period_ts": 1776109260,
    "price": {
        "open_dollars": "0.5600",
        "low_dollars": "0.5500",
        "high_dollars": "0.5800",
        "close_dollars": "0.5700",
        "mean_dollars": "0.5650",
        "previous_dollars": "0.5600",
    },
    "yes_bid": {"open_dollars": "0.5500"},
    "yes_ask": {"open_dollars": "0.5700"},
    "volume_fp": "12.50",
    "open_interest_fp": "10869.00",
}
HISTORICAL_CANDLE = {
    "end_period_ts": 1776109260,
    "price": {"open": "0.5600", "low": "0.5500", "high": "0.5800", "close": "0.5700", "mean": "0.5650"},
    "volume": "12.50",
    "open_interest": "10869.00",
}
STATUS = {
    "exchange_active": True,
    "trading_active": True,
    "intra_exchange_transfers_active": True,
    "exchange_index_statuses": [
        {"exchange_index": 2, "description": "Crypto", "exchange_active": True, "trading_active": False}
    ],
}
SCHEDULE = {
    "schedule": {
        "standard_hours": [
            {
                "start_time": "2026-01-01T00:00:00Z",
                "end_time": "2027-01-01T00:00:00Z",
                "thursday": [
                    {"open_time": "00:00", "close_time": "03:00"},
                    {"open_time": "05:00", "close_time": "00:00"},
                ],
            }
        ],
        "maintenance_windows": [{"start_datetime": "2026-12-01T08:00:00Z", "end_datetime": "2026-12-01T09:00:00Z"}],
    }
}
CUTOFF = {
    "market_settled_ts": "2026-03-25T00:00:00Z",
    "trades_created_ts": "2026-03-25T00:00:00Z",
    "orders_updated_ts": "2026-03-24T00:00:00Z",
}
ACCOUNT_LIMITS = {
    "usage_tier": "basic",
    "read": {"refill_rate": 200, "bucket_capacity": 200},
    "write": {"refill_rate": 100, "bucket_capacity": 100},
    "grants": [],
}

SNAPSHOT = {
    "type": "orderbook_snapshot",
    "sid": 1,
    "seq": 1,
    "msg": {
        "market_ticker": TICKER,
        "market_id": "f5ed38e2-0991-4c8f-817e-08c4fd9cbfdb",
        "yes_dollars_fp": [["0.4700", "3.00"], ["0.4600", "1.50"]],
        "no_dollars_fp": [["0.4800", "2.00"]],
    },
}
DELTA = {
    "type": "orderbook_delta",
    "sid": 1,
    "seq": 2,
    "msg": {
        "market_ticker": TICKER,
        "market_id": "f5ed38e2-0991-4c8f-817e-08c4fd9cbfdb",
        "price_dollars": "0.4700",
        "delta_fp": "-3.00",
        "side": "yes",
        "ts": "2026-06-11T06:31:29.957081Z",
        "ts_ms": 1781159489957,
    },
}
QUOTE = {
    "type": "ticker",
    "sid": 11,
    "sending_ts_ms": 1669149841123,
    "msg": {
        "market_id": "9b0f6b43-5b68-4f9f-9f02-9a2d1b8ac1a1",
        "market_ticker": "FED-23DEC-T3.00",
        "price_dollars": "0.4800",
        "yes_bid_dollars": "0.4500",
        "yes_ask_dollars": "0.5300",
        "volume_fp": "33896.00",
        "open_interest_fp": "20422.00",
        "dollar_volume": 16948,
        "dollar_open_interest": 10211,
        "yes_bid_size_fp": "300.00",
        "yes_ask_size_fp": "150.00",
        "last_trade_size_fp": "25.00",
        "ts": 1669149841,
        "ts_ms": 1669149841000,
        "time": "2022-11-22T20:44:01Z",
    },
}
SOCKET_TRADE = {
    "type": "trade",
    "sid": 11,
    "seq": 2,
    "msg": {
        "trade_id": "d91bc706-ee49-470d-82d8-11418bda6fed",
        "market_ticker": OTHER,
        "yes_price_dollars": "0.3600",
        "no_price_dollars": "0.6400",
        "count_fp": "136.00",
        "taker_side": "no",
        "taker_outcome_side": "no",
        "taker_book_side": "ask",
        "is_block_trade": False,
        "ts": 1669149841,
        "ts_ms": 1669149841000,
    },
}
DETERMINED = {
    "type": "market_lifecycle_v2",
    "sid": 1,
    "seq": 279597,
    "msg": {
        "market_ticker": "KXMLBSPREAD-26JUL191605WSHATH-ATH4",
        "event_type": "determined",
        "result": "no",
        "settlement_value": "0.0000",
        "determination_ts": 1784501722,
    },
}
CREATED = {
    "type": "market_lifecycle_v2",
    "sid": 1,
    "seq": 5,
    "msg": {
        "market_ticker": "INXD-23SEP14-B4487",
        "event_type": "created",
        "exchange_index": 0,
        "open_ts": 1694635200,
        "close_ts": 1694721600,
        "price_level_structure": "linear_cent",
        "price_ranges": [{"start": "0.0000", "end": "1.0000", "step": "0.0100"}],
        "additional_metadata": {
            "name": "S&P 500",
            "title": "S&P 500 close?",
            "yes_sub_title": "4,475 to 4,499",
            "no_sub_title": "4,475 to 4,499",
            "rules_primary": "If it closes there, Yes.",
            "rules_secondary": "",
            "can_close_early": True,
            "event_ticker": "INXD-23SEP14",
            "expected_expiration_ts": 1694721600,
            "strike_type": "greater",
            "floor_strike": 4487,
        },
    },
}
EVENT_LISTED = {
    "type": "event_lifecycle",
    "sid": 5,
    "seq": 9,
    "msg": {
        "event_ticker": "KXQUICKSETTLE-26JAN25H2150",
        "exchange_index": 0,
        "title": "What will happen?",
        "subtitle": "Jan 25 at 21:50",
        "collateral_return_type": "MECNET",
        "series_ticker": "KXQUICKSETTLE",
    },
}
EVENT_FEE = {
    "type": "event_fee_update",
    "sid": 5,
    "seq": 10,
    "msg": {"event_ticker": "KXNBA-26", "fee_type_override": "flat", "fee_multiplier_override": 0.5},
}
SUBSCRIBED = {"type": "subscribed", "id": 1, "msg": {"channel": "orderbook_delta", "sid": 1}}
OK = {"id": 123, "sid": 1, "seq": 222, "type": "ok", "msg": {"market_tickers": [TICKER, OTHER]}}
LISTED = {"id": 3, "type": "ok", "msg": [{"channel": "ticker", "sid": 2}]}
UNSUBSCRIBED = {"id": 102, "sid": 2, "seq": 7, "type": "unsubscribed"}
ERROR = {"id": 1, "type": "error", "msg": {"code": 8, "msg": "Unknown channel name"}}
OVERFLOW = {"type": "error", "sid": 1, "seq": 3, "msg": {"code": 25, "msg": "Buffer overflow"}}

FRAMES = (
    *(SNAPSHOT, DELTA, QUOTE, SOCKET_TRADE, DETERMINED, CREATED, EVENT_LISTED, EVENT_FEE),
    *(SUBSCRIBED, OK, LISTED, UNSUBSCRIBED, ERROR, OVERFLOW),
)

NESTED_ERROR = {
    "error": {
        "code": "authentication_error",
        "message": "authentication_error",
        "details": "INCORRECT_API_KEY_SIGNATURE",
    }
}
CLOCK_ERROR = {"error": {"code": "header_timestamp_expired", "message": "header_timestamp_expired"}}
NO_HEADERS_ERROR = {"error": {"code": "token_authentication_failure", "message": "token_authentication_failure"}}
FLAT_ERROR = {"code": "invalid_parameters", "message": "invalid parameters", "details": "limit"}
BARE_ERROR = {"msg": "Invalid format for parameter limit: …"}
LIMIT_ERROR = {"error": "too many requests"}


def frame(message: Any) -> bytes:
    """Return a message as the exchange frames it: with a newline at its end."""
    return json.dumps(message).encode() + b"\n"
