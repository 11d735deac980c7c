"""Field parsers shared by all messages of the exchange."""

from upstream.transport.numbers import Converted, Number, micro, price

PRICES = Converted(price, 16_384)
"""There are fewer prices, at the smallest tick."""
SIZES = Converted(micro, 16_384)
"""Round sizes come again, and a book repeats those of its last one."""


class Sides(dict[str, int]):
    """Sides by how they are written: 1 for BUY, -1 for SELL; ValueError for anything else."""

    def __missing__(self, text: str) -> int:
        raise ValueError(f"neither BUY nor SELL: {text!r:.80}")


SIDES = Sides({"BUY": 1, "SELL": -1, "buy": 1, "sell": -1, "Buy": 1, "Sell": -1})


def optional(value: Number | None) -> int | None:
    """Convert an amount; None for a missing field or an empty string."""
    return None if value is None or value == "" else SIZES[value]


def optional_price(value: Number | None) -> int | None:
    """Convert a price; None for a missing field or an empty string."""
    return None if value is None or value == "" else PRICES[value]


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
