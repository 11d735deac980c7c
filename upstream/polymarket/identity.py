"""Trade ids, the same whichever source a trade came from (docs/decisions/0001)."""

import struct
from hashlib import blake2b

_SIGNED = struct.Struct(">q").unpack
DIGEST_BYTES = 8
ASSIGNED = "0x" + "0" * 32
"""Prefix of a hash assigned to a recorded trade without one: it identifies the trade, and is never shown."""


def signed(digest: bytes) -> int:
    """Return the number of a 64-bit digest, signed as the database stores it."""
    number: int = _SIGNED(digest)[0]
    return number


def digest(text: str) -> int:
    """Return a 64-bit digest of a text, signed as the database stores it."""
    return signed(blake2b(text.encode(), digest_size=DIGEST_BYTES).digest())


def trade_id(  # noqa: PLR0917 (called for each message)
    token_id: str, tx_hash: str | None, ts_ms: int, side: int, price: int, size: int, n: int = 0
) -> int:
    """Return a trade's id, from its content: equal from the socket and, given a transaction hash, from the Data API."""
    return digest(f"{token_id}|{tx_hash.lower() if tx_hash else ts_ms}|{side}|{price}|{size}|{n}")
