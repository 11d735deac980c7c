"""Rows of live state, as the database reads what is sent."""

from datetime import UTC, datetime

import pytest

from orchestration.ingest.storage import records
from orchestration.ingest.storage.leader import REFUSED
from orchestration.ingest.storage.rows import LiveBook, LivePrice, Quote, Snapshot
from sql.queries import feed as queries
from tests.orchestration.ingest.builders import NOW, token

HASH = "0123456789abcdef0123456789ABCDEF01234567"
AT = datetime.fromtimestamp(NOW / 1000, UTC)
COLUMNS = (
    "market_key outcome ts seq event_id tick_size bid ask mid bid_size ask_size last last_ts"
    " bid_prices bid_sizes ask_prices ask_sizes hash"
)


def read(conn, encoded):
    """Return the rows as the database reads them, without what is null."""
    conn.adapters.register_dumper(records.Records, records.RecordsDumper)
    rows = conn.execute(
        f"select {COLUMNS.replace(' ', ', ')} from unnest(%s::feed_row[])",
        [records.Records(queries.feed_row(conn), encoded)],
    ).fetchall()
    named = [dict(zip(COLUMNS.split(), row, strict=True)) for row in rows]
    return [{name: value for name, value in row.items() if value is not None} for row in named]


def test_snapshots_with_empty_sides_are_read_like_others(conn):
    sides = [([(400_000, 1), (390_000, 1 << 40)], [(420_000, 3)]), ([], [(420_000, 3)]), ([], [])]
    rows = [Snapshot(token(), NOW, 9, 7, bids, asks, HASH) for bids, asks in sides]

    assert read(conn, records.snapshots(rows)) == [
        {
            "market_key": token().market_key,
            "outcome": token().outcome,
            "ts": AT,
            "seq": 7,
            "event_id": 9,
            "bid_prices": [price for price, _ in bids],
            "bid_sizes": [size for _, size in bids],
            "ask_prices": [price for price, _ in asks],
            "ask_sizes": [size for _, size in asks],
            "hash": bytes.fromhex(HASH),
        }
        for bids, asks in sides
    ]


def test_quotes_and_prices_have_what_is_known(conn):
    key = {"market_key": token().market_key, "outcome": token().outcome, "ts": AT, "seq": 0}
    whole = {"bid": 400_000, "ask": 420_000, "bid_size": 5, "ask_size": 6}
    half = {"ask": 420_000, "ask_size": 6}

    quotes = read(
        conn, records.quotes([Quote(token(), NOW, 400_000, 420_000, 5, 6), Quote(token(), NOW, None, 420_000, None, 6)])
    )
    prices = read(
        conn,
        records.prices(
            [
                LivePrice(token(), 400_000, 420_000, 5, 6, 410_000, NOW - 1_000, NOW, None),
                LivePrice(token(), None, 420_000, None, 6, None, None, NOW, None),
            ]
        ),
    )

    assert quotes == [key | whole | {"mid": 410_000}, key | half]
    last = {"last": 410_000, "last_ts": datetime.fromtimestamp(NOW / 1000 - 1, UTC)}
    assert prices == [key | whole | {"mid": 410_000} | last, key | half]


@pytest.mark.parametrize("tick", [10_000, None], ids=["with a tick", "without"])
@pytest.mark.parametrize(("hash_", "read_as"), [(HASH, bytes.fromhex(HASH)), ("z1", b"z1")], ids=["hex", "no hex"])
def test_books_have_the_instant_of_their_snapshot(conn, tick, hash_, read_as):
    book = LiveBook(
        token(), [400_000], [5], [], [], 0, tick, hash_, 7, NOW, NOW - 1_000, verified=True, needs_snapshot=False
    )

    (row,) = read(conn, records.books([book]))

    expected = {"ts": AT, "seq": 7, "last_ts": datetime.fromtimestamp(NOW / 1000 - 1, UTC), "hash": read_as}
    levels = {"bid_prices": [400_000], "bid_sizes": [5], "ask_prices": [], "ask_sizes": []}
    known = {"tick_size": tick} if tick else {}
    assert row == {"market_key": token().market_key, "outcome": token().outcome} | expected | levels | known


def test_a_size_too_large_for_a_book_raises_what_the_leader_expects():
    row = Snapshot(token(), NOW, 9, 7, [(400_000, 1 << 63)], [], HASH)

    with pytest.raises(REFUSED):
        records.snapshots([row])
