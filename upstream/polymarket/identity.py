"""What a trade is called, whichever source told of it (docs/decisions/0001)."""

from hashlib import blake2b

ASSIGNED = "0x" + "0" * 32
"""How a hash begins that was assigned to a recorded trade without one: it names the trade, and is never shown."""


def digest(text: str) -> int:
    """Give 64 bits of a text, signed as the database keeps them."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def trade_id(  # noqa: PLR0917 (called for each message)
    token_id: str, tx_hash: str | None, ts_ms: int, side: int, price: int, size: int, n: int = 0
) -> int:
    """Name a trade by what it is: the same from the socket and, when a transaction hash is known, from the Data API."""
    return digest(f"{token_id}|{tx_hash.lower() if tx_hash else ts_ms}|{side}|{price}|{size}|{n}")
