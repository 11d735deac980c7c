"""Row ids that do not depend on which run wrote a row, or when (docs/decisions/0001)."""

from hashlib import blake2b

from upstream.polymarket.identity import ASSIGNED, DIGEST_BYTES, digest, signed

ORDINAL_BITS = 20
LAST = (1 << ORDINAL_BITS) - 1  # sorts after every other event of its instant


def trade_id(exchanges_id: str) -> int:
    """Return the id of a trade to which the exchange gives one, whichever of its sources it came from."""
    return digest(exchanges_id)


def change_digest(  # noqa: PLR0917 (called for each message)
    token_id: str, ts_ms: int, hash_: str, side: int, price: int, size: int, n: int = 0
) -> bytes:
    """Return the id of a level change in eight bytes, as it is written."""
    text = f"{token_id}|{ts_ms}|{hash_}|L|{side}|{price}|{size}|{n}"
    return blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()


def change_id(  # noqa: PLR0917
    token_id: str, ts_ms: int, hash_: str, side: int, price: int, size: int, n: int = 0
) -> int:
    """Return the id of a level change."""
    return signed(change_digest(token_id, ts_ms, hash_, side, price, size, n))


def snapshot_id(token_id: str, ts_ms: int, content: str) -> int:
    """Return the id of a snapshot, from its content: the exchange's hash or, without one, the levels."""
    return digest(f"{token_id}|{ts_ms}|{content}|S||||0")


def seq(eff_ms: int, ordinal: int) -> int:
    """Return a sequence number that orders a token's events by time and, within an instant, by arrival."""
    return eff_ms << ORDINAL_BITS | min(ordinal, LAST)


def seq_ms(seq: int) -> int:
    """Return the timestamp (ms) in a `seq`."""
    return seq >> ORDINAL_BITS


def as_bytes(hash_: str | None) -> bytes | None:
    """Convert a hex hash to bytes; a non-hex hash is kept as text."""
    if not hash_:
        return None
    try:
        return bytes.fromhex(hash_.removeprefix("0x"))
    except ValueError:
        return hash_.encode()[:64]


def transaction(hash_: str | None) -> bytes | None:
    """Convert a trade's transaction hash to bytes; None if the hash is only assigned (docs/decisions/0001)."""
    return None if hash_ is None or hash_.startswith(ASSIGNED) else as_bytes(hash_)
