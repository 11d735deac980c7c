"""Identities that do not depend on who wrote a row, or when (docs/decisions/0001)."""

from upstream.polymarket.identity import ASSIGNED, digest, trade_id

__all__ = ["as_bytes", "change_id", "seq", "seq_ms", "snapshot_id", "trade_id", "trade_text", "transaction"]

ORDINAL_BITS = 20
LAST = (1 << ORDINAL_BITS) - 1  # behind every other of its instant


def change_id(  # noqa: PLR0917 (called for each message)
    token_id: str, ts_ms: int, hash_: str, side: int, price: int, size: int, n: int = 0
) -> int:
    """Name a level change."""
    return digest(f"{token_id}|{ts_ms}|{hash_}|L|{side}|{price}|{size}|{n}")


def snapshot_id(token_id: str, ts_ms: int, content: str) -> int:
    """Name a snapshot by its content: the exchange's digest or, where it sent none, the levels."""
    return digest(f"{token_id}|{ts_ms}|{content}|S||||0")


def seq(eff_ms: int, ordinal: int) -> int:
    """Order events of one token by time and, within an instant, by arrival."""
    return eff_ms << ORDINAL_BITS | min(ordinal, LAST)


def seq_ms(seq: int) -> int:
    """Give the instant that a `seq` starts with."""
    return seq >> ORDINAL_BITS


def trade_text(trade_id: int) -> str:
    """Say a trade's id as the API does: 16 hex digits, since JSON numbers lose digits beyond 2⁵³."""
    return f"{trade_id & 0xFFFFFFFFFFFFFFFF:016x}"


def as_bytes(hash_: str | None) -> bytes | None:
    """Give a hex hash as bytes; one that is not hex is kept as its text."""
    if not hash_:
        return None
    try:
        return bytes.fromhex(hash_.removeprefix("0x"))
    except ValueError:
        return hash_.encode()[:64]


def transaction(hash_: str | None) -> bytes | None:
    """Give the transaction of a trade as bytes; none where the hash is only assigned (docs/decisions/0001)."""
    return None if hash_ is None or hash_.startswith(ASSIGNED) else as_bytes(hash_)
