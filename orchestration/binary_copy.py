"""PostgreSQL's binary COPY format: what begins and ends it, byte values, and timestamps."""

import struct

HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
TRAILER = struct.pack(">h", -1)
LENGTH = struct.Struct(">i").pack
NULL = LENGTH(-1)
PG_EPOCH_S = 946_684_800  # timestamptz counts microseconds from 2000


def nullable(value: bytes | None) -> bytes:
    """Encode a value of any length, or null."""
    return NULL if value is None else LENGTH(len(value)) + value


def microseconds(ts_ms: int) -> int:
    """Convert Unix milliseconds to a timestamptz."""
    return (ts_ms - PG_EPOCH_S * 1000) * 1000
