"""ABI words: hex text to words of 32 bytes, and words to values; ValueError for invalid ones."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    import numpy.typing as npt

    from upstream.chain.wire import RawLog

    Table: TypeAlias = npt.NDArray[np.uint8]
    Ints: TypeAlias = npt.NDArray[np.int64]
    Bools: TypeAlias = npt.NDArray[np.bool_]

WORD = 32
MAX_AMOUNT = 2**63 - 1
"""The largest amount: a bigint of the database."""
LOGS_PER_CHUNK = 2048
"""Logs whose text fits the processor's cache."""
MAX_ITEMS = 1024
"""Items of an array in a log: more than any market has outcomes."""
_MAX_NUMBER = 2**53
_DIGITS = frozenset("0123456789abcdefABCDEF")


class Numbers(dict[str, int]):
    """Cache of small hex numbers: the same blocks and log indexes come again and again."""

    def __missing__(self, text: str) -> int:
        digits = text[2:]
        if text[:2] != "0x" or not digits or not _DIGITS.issuperset(digits) or len(digits) > 16:
            raise ValueError(f"not a number: {text!r:.80}")
        number = int(digits, 16)
        if number > _MAX_NUMBER:
            raise ValueError(f"not a block, nor a place in one: {text}")
        self[text] = number
        return number


def from_hex(text: str) -> bytes:
    """Decode `0x…` to whole bytes."""
    if text[:2] != "0x":
        raise ValueError(f"not hex: {text!r:.80}")
    return binascii.unhexlify(text[2:])


def from_hex_sized(text: str, size: int) -> bytes:
    """Decode `0x…` to exactly `size` bytes."""
    read = from_hex(text)
    if len(read) != size:
        raise ValueError(f"{len(read)} bytes instead of {size}: {text!r:.80}")
    return read


def table(logs: Sequence[RawLog], words: int) -> Table:
    """Return logs as rows of words: topics 1 to 3, data, and last the transaction's hash.

    Vectorised, as this is by far the largest part of decoding; so one bad log is a ValueError for all of them.
    """
    made = np.empty((len(logs), words + 4, WORD), np.uint8)
    for first in range(0, len(logs), LOGS_PER_CHUNK):
        some = logs[first : first + LOGS_PER_CHUNK]
        made[first : first + len(some)] = _table(some, words)
    return made


def _table(logs: Sequence[RawLog], words: int) -> Table:
    try:
        rows = [f"{(of := log.topics)[1]}{of[2]}{of[3]}{log.data}{log.transaction_hash}" for log in logs]
    except IndexError:
        raise ValueError("too few topics") from None
    text = "".join(rows).encode("ascii")
    starts = np.array([0, 66, 132, 198, 200 + 64 * words])
    length = 266 + 64 * words
    if len(text) != length * len(logs):
        raise ValueError("not the event's shape")
    letters = np.frombuffer(text, np.uint8).reshape(len(logs), length)
    if (letters[:, starts] != ord("0")).any() or (letters[:, starts + 1] != ord("x")).any():
        raise ValueError("not the event's shape")  # each part begins where it must, so each has its length
    ends = [*starts[1:].tolist(), length]
    digits = np.concatenate(
        [letters[:, start + 2 : end] for start, end in zip(starts.tolist(), ends, strict=True)], axis=1
    )
    return np.frombuffer(binascii.unhexlify(digits.reshape(-1).data), np.uint8).reshape(len(logs), words + 4, WORD)


def amounts(words: Table) -> tuple[Ints, Bools]:
    """Return words (n, 32) as amounts, and a mask of those beyond int64 (which read as 0)."""
    limbs = np.ascontiguousarray(words).view(">u8")
    beyond = nonzero(limbs[:, :3]) | (limbs[:, 3] > MAX_AMOUNT)
    return np.where(beyond, 0, limbs[:, 3]).astype(np.int64), beyond


def nonzero(parts: npt.NDArray[np.unsignedinteger[Any]]) -> Bools:
    """Return which rows have any non-zero element."""
    return np.asarray(parts.any(axis=1))


def as_voids(parts: Table) -> npt.NDArray[np.void]:
    """Return each row of bytes as one void element."""
    return np.ascontiguousarray(parts).view(f"V{parts.shape[1]}").reshape(len(parts))


def word(data: bytes, slot: int) -> bytes:
    """Return the word at an index."""
    read = data[WORD * slot : WORD * (slot + 1)]
    if len(read) != WORD:
        raise ValueError("the data ends too early")
    return read


def address(read: bytes) -> bytes:
    """Return a word as an address."""
    if any(read[:12]):
        raise ValueError(f"not an address: {read.hex()}")
    return read[12:]


def amount(read: bytes) -> int:
    """Return a word as an amount."""
    number = int.from_bytes(read)
    if number > MAX_AMOUNT:
        raise ValueError("an amount beyond int64")
    return number


def array(data: bytes, slot: int) -> list[bytes]:
    """Return the words of the dynamic array whose offset is at an index."""
    start = int.from_bytes(word(data, slot))
    if start > len(data) - WORD:
        raise ValueError("an array beyond the data")
    count = int.from_bytes(data[start : start + WORD])
    if count > MAX_ITEMS or start + WORD * (count + 1) > len(data):
        raise ValueError("an array longer than the data")
    begin = start + WORD
    return [data[begin + WORD * item : begin + WORD * (item + 1)] for item in range(count)]
