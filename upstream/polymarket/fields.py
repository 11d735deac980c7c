"""The small things that every message of the exchange is made of."""

from upstream.transport.numbers import micro, price

Number = str | int | float
"""Amounts are strings by the protocol; plain numbers are taken too."""

SIDES = {"BUY": 1, "SELL": -1, "buy": 1, "sell": -1, "Buy": 1, "Sell": -1}


def optional(value: Number | None) -> int | None:
    """Convert an amount; None where the exchange sends nothing or an empty string."""
    return None if value is None or value == "" else micro(value)


def optional_price(value: Number | None) -> int | None:
    """Convert a price; None where the exchange sends nothing or an empty string."""
    return None if value is None or value == "" else price(value)


def named(asset_id: str) -> str:
    """Take a token id, which is never empty."""
    if not asset_id:
        raise ValueError("no asset_id")
    return asset_id


def digest(text: str | None) -> str:
    """Take the hash when it is hex, else "": it is evidence, and no reason to refuse a price."""
    if not text:
        return ""
    try:
        bytes.fromhex(text)
    except ValueError:
        return ""
    return text


def side_of(text: str) -> int:
    """Read a side: 1 for BUY, -1 for SELL."""
    try:
        return SIDES[text]
    except KeyError:
        raise ValueError(f"neither BUY nor SELL: {text!r:.80}") from None


def transaction(text: str | None) -> str | None:
    """Take a transaction hash in lower case; None where the exchange sends none, ValueError for what is none."""
    if not text:
        return None
    text = text.lower()
    if len(text) != 66 or text[:2] != "0x" or len(bytes.fromhex(text[2:])) != 32:
        raise ValueError(f"not a transaction hash: {text!r:.80}")
    return text


def outcome_place(index: int | None) -> int | None:
    """Take an outcome's place; 999 and the like stand for "unknown" in the exchange's listings."""
    return index if index is not None and 0 <= index < 256 else None
