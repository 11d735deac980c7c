"""Field parsers shared by all messages of the exchange."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from upstream.transport.numbers import MICRO, Converted, Number, instant, micro, milliseconds, price

TICKER = re.compile(r"[A-Z0-9.-]{1,200}")
TRADE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
COMBO = "KXMVE"
"""Prefix of combos' tickers: markets made on request of several others, by the thousand."""
OUTCOMES = ("yes", "no")
MAX_SECONDS = 7_258_118_400  # 2200-01-01: closing times lie in the future

PRICES = Converted(price, 16_384)
SIZES = Converted(micro, 16_384)
SIDES = {"yes": 0, "no": 1}


def ticker(text: str) -> str:
    """Return a ticker; ValueError for what cannot be one: A-Z, 0-9, - and . are all there is."""
    if not TICKER.fullmatch(text):
        raise ValueError(f"not a ticker: {text!r:.80}")
    return text


def token_id(market: str, outcome: int) -> str:
    """Return the id of an outcome's token: `KXFED-27APR-T4.25:yes`."""
    return f"{market}:{OUTCOMES[outcome]}"


def trade_id(text: str) -> str:
    """Return a trade's id; they have a UUID's shape, but not its variants."""
    text = text.lower()
    if not TRADE_ID.fullmatch(text):
        raise ValueError(f"not a trade id: {text!r:.80}")
    return text


def optional_size(value: Number | None) -> int | None:
    """Convert an amount; None for a missing field or an empty string, as old rows have."""
    return None if value is None or value == "" else SIZES[value]


def optional_price(value: Number | None) -> int | None:
    """Convert a price; None for a missing field or an empty string."""
    return None if value is None or value == "" else PRICES[value]


def quote(value: Number | None, size: Number | None, empty: int) -> int | None:
    """Convert a best price; None for an empty side, which is sent as a price of 0 (bid) or 1 (ask) without a size."""
    amount = optional_price(value)
    return None if amount == empty and not optional_size(size) else amount


def complement(amount: int | None) -> int | None:
    """Return the other outcome's price."""
    return None if amount is None else MICRO - amount


def side_index(text: str) -> int:
    """Return 0 for yes, 1 for no; ValueError for anything else."""
    if text not in SIDES:
        raise ValueError(f"neither yes nor no: {text!r:.80}")
    return SIDES[text]


def taker_side(outcome: str | None, book_side: str | None, deprecated: str | None) -> int:
    """Return 1 if the taker bought YES or sold NO, else -1, from the newest of three fields that is there."""
    if outcome:
        return (1, -1)[side_index(outcome)]
    if book_side:
        if book_side not in {"bid", "ask"}:
            raise ValueError(f"neither bid nor ask: {book_side!r:.80}")
        return 1 if book_side == "bid" else -1
    if deprecated:
        return (1, -1)[side_index(deprecated)]
    raise ValueError("a trade without its taker's side")


def trade_price(yes: Number | None, no: Number | None) -> int:
    """Return the price of YES, from either of the two; ValueError if they do not add up to 1."""
    amount, other = optional_price(yes), optional_price(no)
    if amount is None:
        if other is None:
            raise ValueError("a trade without a price")
        return MICRO - other
    if other is not None and amount + other != MICRO:
        raise ValueError(f"prices of {yes!r:.40} and {no!r:.40} do not add up to 1")
    return amount


def date(seconds: float) -> datetime:
    """Parse a unix time in seconds that may lie in the future; ValueError outside 1970 to 2200."""
    if not 0 < seconds < MAX_SECONDS:
        raise ValueError(f"not a time: {seconds!r:.80}")
    return datetime.fromtimestamp(seconds, UTC)


def optional_date(seconds: float | None) -> datetime | None:
    """Parse as `date`; None for a missing field."""
    return None if seconds is None else date(seconds)


def past_ms(text: str) -> int:
    """Parse a date of something that has happened, as milliseconds; ValueError if it has none or cannot have."""
    at = instant(text)
    if at is None:
        raise ValueError(f"not a time: {text!r:.80}")
    return milliseconds(int(at.timestamp() * 1000))


def message_ms(ts_ms: int | None, ts: float | str | None) -> int:
    """Return a message's time in ms, from `ts_ms` or the deprecated `ts`: seconds, or in order book changes a date."""
    if ts_ms is not None:
        return milliseconds(ts_ms)
    if isinstance(ts, str):
        return past_ms(ts)
    if ts is None:
        raise ValueError("no time")
    return milliseconds(int(ts * 1000))
