"""Field parsers shared by all messages of the exchange."""

from functools import lru_cache

from upstream.transport.numbers import micro, price

Number = str | int | float
"""Amounts are strings by the protocol; plain numbers are accepted too."""

level_price = lru_cache(maxsize=16_384)(price)
"""`price` of a `Number`, cached: there are fewer prices, at the smallest tick."""
level_size = lru_cache(maxsize=2048)(micro)
"""`micro` of a `Number`, cached: round sizes come again. A larger cache costs more in memory traffic than it saves."""

SIDES = {"BUY": 1, "SELL": -1, "buy": 1, "sell": -1, "Buy": 1, "Sell": -1}


def optional(value: Number | None) -> int | None:
    """Convert an amount; None for a missing field or an empty string."""
    return None if value is None or value == "" else micro(value)


@lru_cache(maxsize=16_384)
def optional_price(value: Number | None) -> int | None:
    """Convert a price; None for a missing field or an empty string."""
    return None if value is None or value == "" else price(value)


def named(asset_id: str) -> str:
    """Return a token id; ValueError when empty."""
    if not asset_id:
        raise ValueError("no asset_id")
    return asset_id


def digest(text: str | None) -> str:
    """Return the hash if it is hex, else "": it is evidence, and no reason to refuse a price."""
    if not text:
        return ""
    try:
        bytes.fromhex(text)
    except ValueError:
        return ""
    return text


def side_of(text: str) -> int:
    """Parse a side: 1 for BUY, -1 for SELL."""
    try:
        return SIDES[text]
    except KeyError:
        raise ValueError(f"neither BUY nor SELL: {text!r:.80}") from None


def transaction(text: str | None) -> str | None:
    """Return a transaction hash in lower case; None when missing, ValueError when invalid."""
    if not text:
        return None
    text = text.lower()
    if len(text) != 66 or text[:2] != "0x" or len(bytes.fromhex(text[2:])) != 32:
        raise ValueError(f"not a transaction hash: {text!r:.80}")
    return text


def outcome_place(index: int | None) -> int | None:
    """Return an outcome's index; None for 999 and the like, which mean "unknown" in the exchange's listings."""
    return index if index is not None and 0 <= index < 256 else None
