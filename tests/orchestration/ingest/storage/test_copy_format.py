"""Rows in the binary COPY format, beside the same rows encoded one field after the other."""

import struct

import msgspec
import pytest

from orchestration.binary_copy import microseconds
from orchestration.ingest.storage import copy_format
from orchestration.ingest.storage.ids import as_bytes
from orchestration.ingest.storage.rows import Change
from tests.orchestration.ingest.builders import NOW, token

HASH = "0123456789abcdef0123456789ABCDEF01234567"


def change(hash_, side=1, size=5_000_000):
    return Change(token(), NOW, 0, 7, side, 400_000, size, hash_, True, None, None, 0, None)


def field(kind, value):
    data = struct.pack(f">{kind}", value)
    return struct.pack(">i", len(data)) + data


def text(value):
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def fields_of(row):
    of = row.token
    return b"".join(
        [
            struct.pack(">h", 9),
            field("q", microseconds(row.ts_ms)),
            field("i", of.market_key),
            field("h", of.outcome),
            field("q", row.event_id),
            field("q", row.seq),
            field("h", row.side),
            field("i", row.price),
            field("q", row.size),
            text(as_bytes(row.hash)),
        ]
    )


@pytest.mark.parametrize(
    "hashes",
    [
        [HASH, HASH.lower()],
        ["", HASH],
        ["ab", "0xab", HASH],
        ["z" * 40, HASH],
        [HASH[:38] + "  "],
        [HASH[:39] + " ", " " + HASH[:39]],
        [HASH[:20] + " " * 20, HASH[20:] + " " * 20],
        [],
    ],
    ids=["the exchange's", "none", "short", "no digits", "with blanks", "blanks that meet", "half blanks", "no rows"],
)
def test_changes_are_encoded_whatever_their_hashes(hashes):
    rows = [change(hash_, side=(-1) ** nth, size=nth) for nth, hash_ in enumerate(hashes)]

    assert copy_format.changes(rows) == b"".join(map(fields_of, rows))


@pytest.mark.parametrize("what", [{"price": 1 << 31}, {"size": 1 << 63}, {"seq": 1 << 63}])
def test_a_number_too_large_for_its_column_raises(what):
    row = msgspec.structs.replace(change(HASH), **what)

    with pytest.raises(struct.error):
        copy_format.changes([change(HASH), row])
