"""Messages of every kind get their numbers last, and completely."""

from __future__ import annotations

import json

from orchestration import stream
from tests import stream_rows


def test_messages_are_numbered_in_order_and_keep_market_and_wallet(conn):
    told = [
        stream.message("onchain_trade", 5, "0xabc", {"size": 1.5}),
        stream.message("wallet_activity", 6, None, {"role": "maker"}, b"\x01" * 20),
    ]

    assert stream.publish(conn, told, 1_790_000_000_000) == 2
    assert stream.publish(conn, [], 1_790_000_000_000) == 0

    rows = stream_rows.rows(conn)
    assert [(row.seq, row.type, row.market_id, row.wallet) for row in rows] == [
        (1, "onchain_trade", "0xabc", None),
        (2, "wallet_activity", None, b"\x01" * 20),
    ]
    assert json.loads(rows[0].message) == {
        "type": "onchain_trade",
        "seq": 1,
        "ts": 5,
        "market_id": "0xabc",
        "data": {"size": 1.5},
    }
    assert json.loads(rows[1].message)["market_id"] is None
    assert conn.execute("select last_seq from stream_head").fetchone() == (2,)
