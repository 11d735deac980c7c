"""Encodes rows in PostgreSQL's binary COPY format: one precompiled `struct` per table, about a microsecond a row."""

import struct
from collections.abc import Iterable, Sequence
from itertools import repeat

from orchestration.binary_copy import PG_EPOCH_S, microseconds, nullable
from orchestration.ingest.storage.ids import as_bytes, change_digest
from orchestration.ingest.storage.rows import Change, TradeRow

_TRADE = struct.Struct(">hiqiiihiqiqihiqiqiq").pack
_HASH_BYTES = 20  # of the exchange's hashes
_CHANGE = struct.Struct(f">hiqiiihi8siqihiiiqi{_HASH_BYTES}s").pack

_EPOCH_MS = PG_EPOCH_S * 1000


def _hash_values(hashes: Sequence[str]) -> list[bytes]:
    """Return the hashes in bytes if all of them are of the exchange, as they usually are; otherwise nothing."""
    try:
        joined = bytes.fromhex("".join(hashes))
    except ValueError:
        return []
    if {*map(len, hashes)} != {2 * _HASH_BYTES} or len(joined) != _HASH_BYTES * len(hashes):  # less if there are blanks
        return []
    return [joined[at : at + _HASH_BYTES] for at in range(0, len(joined), _HASH_BYTES)]


# fmt: off
def trades(rows: Iterable[TradeRow]) -> bytes:
    """Encode ts, market_key, outcome, trade_id, seq, side, price, size, value_usd, tx_hash."""
    return b"".join([
        _TRADE(
            10, 8, microseconds(row.ts_ms), 4, row.token.market_key, 2, row.token.outcome, 8, row.trade_id, 8, row.seq,
            2, row.side, 8, row.price, 8, row.size, 8, row.value_usd,
        ) + nullable(row.tx_hash)
        for row in rows
    ])


def changes(rows: Sequence[Change]) -> bytes:
    """Encode ts, market_key, outcome, event_id, seq, side, price, size, hash."""
    values = _hash_values([row.hash for row in rows])
    encoded = [
        _CHANGE(
            9, 8, (row.ts_ms - _EPOCH_MS) * 1000, 4, (token := row.token).market_key, 2, token.outcome,
            8, change_digest(token.token_id, row.ts_ms, row.hash, row.side, row.price, row.size, row.nth),
            8, row.seq, 2, row.side, 4, row.price, 8, row.size, _HASH_BYTES, value,
        )
        for row, value in zip(rows, values or repeat(b""), strict=bool(values))
    ]
    if not values:
        without = -4 - _HASH_BYTES
        hashes = [nullable(as_bytes(row.hash)) for row in rows]
        encoded = [row[:without] + hash_ for row, hash_ in zip(encoded, hashes, strict=True)]
    return b"".join(encoded)
# fmt: on
