"""Messages of every kind get their numbers last, and completely."""

from __future__ import annotations

import json

from orchestration import stream


def test_messages_are_numbered_in_order_and_keep_market_and_wallet(conn):
    told = [
        stream.message("onchain_trade", 5, "0xabc", {"size": 1.5}),
        stream.message("wallet_activity", 6, None, {"role": "maker"}, b"\x01" * 20),
    ]

    assert stream.publish(conn, told, 1_790_000_000_000) == 2
    assert stream.publish(conn, [], 1_790_000_000_000) == 0

    rows = conn.execute("select seq, type, market_id, wallet, message from stream_events order by seq").fetchall()
    assert [row[:4] for row in rows] == [
        (1, "onchain_trade", "0xabc", None),
        (2, "wallet_activity", None, b"\x01" * 20),
    ]
    assert json.loads(rows[0][4]) == {
        "type": "onchain_trade",
        "seq": 1,
        "ts": 5,
        "market_id": "0xabc",
        "data": {"size": 1.5},
    }
    assert json.loads(rows[1][4])["market_id"] is None
    assert conn.execute("select last_seq from stream_head").fetchone() == (2,)
