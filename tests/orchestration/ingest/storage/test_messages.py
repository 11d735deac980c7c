"""The messages of trades, prices and books, byte for byte as subscribers receive them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from orchestration.ingest.storage import messages
from orchestration.ingest.storage.rows import Change, LiveBook, LivePrice, Token, TradeRow
from sql import stream_blocks
from sql.stream_reader import StoredBlock, StreamReader

TOKEN = Token("77", "0xabc", 7, 1)
AT = 1_790_000_000_000
HEAD = b'"seq":9,"ts":1790000000000,"market_id":"0xabc","data":{'
OUTCOME = b'"market_id":"0xabc","outcome":1,"token_id":"77",'


def served(message):
    """Return a message of number 9 as it is read from its block."""
    block = StoredBlock(9, 9, datetime.now(UTC), stream_blocks.pack([message]))
    ids = [(TOKEN.market_key, TOKEN.outcome, TOKEN.market_id, TOKEN.token_id)]
    (event,) = StreamReader(lambda *_: ids).unpack(None, [block], 8, 9).events
    assert event.market_id == TOKEN.market_id
    return event.message


def test_a_trade():
    row = TradeRow(TOKEN, AT, -5, 1, -1, 410_000, 2_500_000, 1_025_000, b"\xef" * 32)

    assert served(messages.trade(row)) == (
        b'{"type":"trade",' + HEAD + b'"id":"-5","market_id":"0xabc","token_id":"77","outcome":1,'
        b'"price":0.41,"size":2.5,"value_usd":1.025,"side":"SELL","tx_hash":"0x'
        + b"ef" * 32
        + b'","ts":1790000000000}}'
    )


def test_a_price_with_an_empty_side():
    row = LivePrice(TOKEN, 400_000, None, 5_000_000, None, 410_000, AT - 7, AT, None)

    assert served(messages.price(row, AT + 20)) == (
        b'{"type":"price",' + HEAD + OUTCOME + b'"mid":null,"bid":0.4,"ask":null,"spread":null,'
        b'"bid_size":5.0,"ask_size":null,"last":0.41,"last_ts":1789999999993,"volume_24h_usd":null,'
        b'"ts":1790000000000,"age_ms":20}}'
    )


def test_a_whole_book():
    row = LiveBook(
        token=TOKEN,
        bid_prices=[400_000],
        bid_sizes=[5_000_000],
        ask_prices=[420_000],
        ask_sizes=[1],
        depth=2_000_000_400_000,
        tick_size=10_000,
        hash="ab",
        seq=3,
        ts_ms=AT,
        anchored_ms=AT,
        verified=True,
        needs_snapshot=True,
    )

    assert served(messages.snapshot(row)) == (
        b'{"type":"orderbook",' + HEAD + OUTCOME + b'"kind":"snapshot","bids":[{"price":0.4,"size":5.0}],'
        b'"asks":[{"price":0.42,"size":1e-6}],"best_bid":0.4,"best_ask":0.42,"mid":0.41,"spread":0.02,'
        b'"depth_usd":2.0,"tick_size":0.01,"hash":"ab","seq":"3","ts":1790000000000}}'
    )


def test_changed_levels_are_one_message_with_the_last_totals():
    def change(side, price, size):
        return Change(TOKEN, AT, 1, 3, side, price, size, "", True, 400_000, None, 0, None)

    (message,) = messages.deltas([change(1, 400_000, 9), change(1, 400_000, 5_000_000), change(-1, 420_000, 0)])

    assert served(message) == (
        b'{"type":"orderbook",' + HEAD + OUTCOME + b'"kind":"delta","bids":[{"price":0.4,"size":5.0}],'
        b'"asks":[{"price":0.42,"size":0.0}],"best_bid":0.4,"best_ask":null,"mid":null,"spread":null,'
        b'"depth_usd":0.0,"tick_size":null,"hash":null,"seq":"3","ts":1790000000000}}'
    )


@pytest.mark.parametrize("changes", [1, 2])
def test_a_level_without_a_price_is_not_sent(changes):
    row = Change(TOKEN, AT, 1, 3, 1, 0, 5_000_000, "", True, None, None, 0, None)

    (message,) = messages.deltas([row] * changes)

    assert b'"bids":[],"asks":[]' in served(message)
