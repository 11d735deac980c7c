import json
import tracemalloc
from contextlib import contextmanager

import pytest

from orchestration.ingest.storage.backlog import Backlog
from orchestration.ingest.storage.rows import BATCH_BYTES, TRADE_BYTES, Refusal, WriteBatch
from tests.orchestration.ingest.builders import NOW, make_normalizer, token, trades
from upstream.polymarket.market_channel.socket import parse

CAPACITY = 1_000_000


def batch(count=1, received_ms=0, ts_ms=NOW, of=None):
    return WriteBatch(trades=trades(count, of or token(), ts_ms=ts_ms), received_ms=received_ms)


def size(batches, trades):
    """Return the bytes of so many batches with so many trades in all."""
    return batches * BATCH_BYTES + trades * TRADE_BYTES


def test_the_oldest_come_first_and_what_is_committed_is_forgotten():
    backlog = Backlog(CAPACITY)
    first, second, third = batch(2), batch(3), batch(4)
    for each in (first, second, third):
        backlog.add(each)

    merged, end = backlog.head(size(2, 5))
    assert merged.trades == first.trades + second.trades
    backlog.mark_committed(end)
    assert backlog.head(size(2, 5))[0] is third
    assert (backlog.events, backlog.bytes) == (4, size(1, 4))


def test_a_batch_larger_than_asked_for_still_comes():
    backlog = Backlog(CAPACITY)
    backlog.add(batch(50))

    assert len(backlog.head(10)[0]) == 50


def test_beyond_its_capacity_the_oldest_go_and_their_span_is_known():
    backlog = Backlog(size(2, 8))
    for nth in range(5):
        backlog.add(batch(4, ts_ms=NOW + nth * 100))

    overflow = backlog.take_overflow()
    assert (overflow.from_ms, overflow.to_ms, overflow.events) == (NOW, NOW + 203, 12)
    assert backlog.events == 8
    assert backlog.take_overflow() is None


def test_dropped_refusals_are_no_span_of_a_market():
    backlog = Backlog(100)
    for _ in range(2):
        backlog.add(WriteBatch(refusals=[Refusal("socket", "no trade", "{}")], received_ms=NOW))

    assert (len(backlog), backlog.take_overflow()) == (1, None)


def test_a_batch_that_tells_of_no_progress_has_a_span():
    backlog = Backlog(100)
    backlog.add(WriteBatch(received_ms=NOW, exchange_ms=NOW + 7))
    for _ in range(2):  # two takeovers
        backlog.withhold_progress()
    assert backlog.head(CAPACITY)[0].exchange_ms == 0
    backlog.add(batch())

    overflow = backlog.take_overflow()
    assert (overflow.from_ms, overflow.to_ms) == (NOW + 7, NOW + 7)


def test_what_went_over_while_being_written_is_not_forgotten_twice():
    backlog = Backlog(size(1, 10))
    backlog.add(batch(6))
    _, end = backlog.head(CAPACITY)
    kept = batch(6)
    backlog.add(kept)

    backlog.mark_committed(end)

    assert backlog.head(CAPACITY)[0] is kept


def test_a_ring_is_shortened_by_what_somebody_has_committed():
    backlog = Backlog(CAPACITY)
    for nth in range(5):
        backlog.add(batch(received_ms=nth * 100))

    backlog.prune(250)

    assert len(backlog) == 2
    assert backlog.since_ms == 200


def test_a_window_holds_some_tokens_within_a_span():
    backlog, mine, other = Backlog(CAPACITY), token(1), token(2)
    backlog.add(batch(3, ts_ms=NOW, of=mine))
    backlog.add(batch(3, ts_ms=NOW, of=other))

    picked = backlog.window(lambda of: of == mine, NOW + 1, NOW + 5)

    assert [(row.token, row.ts_ms) for row in picked.trades] == [(mine, NOW + 1), (mine, NOW + 2)]
    assert len(backlog.window(lambda _: True, NOW, NOW + 5)) == 6


@contextmanager
def traced_memory():
    """Measure the bytes that the block leaves behind."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def whole_book(of, nth, levels):
    sides = {
        side: [{"price": f"{(low + at) / 1000:.3f}", "size": f"{nth + at}.5"} for at in range(levels // 2)]
        for side, low in (("bids", 100), ("asks", 600))
    }
    fields = {"market": of.market_id, "asset_id": of.token_id, "timestamp": str(NOW + nth), "hash": f"{nth:040x}"}
    return json.dumps({"event_type": "book", **fields, **sides})


def level_change(of, nth):
    change = {"asset_id": of.token_id, "price": "0.39", "size": f"{nth}.5", "side": "BUY", "hash": f"{nth:040x}"}
    return json.dumps(
        {"event_type": "price_change", "market": of.market_id, "timestamp": str(NOW + nth), "price_changes": [change]}
    )


def trade_message(of, nth):
    fields = {"price": "0.41", "size": f"{nth}.5", "side": "BUY", "transaction_hash": f"0x{nth:064x}"}
    return json.dumps(
        {
            "event_type": "last_trade_price",
            "market": of.market_id,
            "asset_id": of.token_id,
            "timestamp": str(NOW + nth),
            **fields,
        }
    )


def test_what_it_holds_is_bounded_in_bytes_whatever_it_is():
    mine = token()
    normalizer, backlog = make_normalizer(mine), Backlog(2_000_000)
    with traced_memory() as held:
        for nth in range(400):
            normalizer.apply(parse(whole_book(mine, nth, 200)))
            backlog.add(normalizer.cut_batch())
        assert held() < 3_000_000

    assert backlog.take_overflow().events == 400 - backlog.events


@pytest.mark.parametrize(
    ("frame", "per_batch"),
    [
        (lambda of, nth: whole_book(of, nth, 200), 1),
        (lambda of, nth: whole_book(of, nth, 2), 10),
        (level_change, 20),
        (trade_message, 20),
    ],
    ids=["books of 200 levels", "books of 2 levels", "level changes", "trades"],
)
def test_the_bytes_it_counts_are_those_that_it_takes(frame, per_batch):
    mine = token()
    normalizer, backlog = make_normalizer(mine), Backlog(1 << 40)
    with traced_memory() as held:
        for nth in range(300):
            normalizer.apply(parse(frame(mine, nth)))
            if nth % per_batch == per_batch - 1:
                backlog.add(normalizer.cut_batch())
        taken = held()

    assert 0.6 < backlog.bytes / taken < 2
