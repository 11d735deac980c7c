"""Two minutes of a market, written by the live feed, for replay tests."""

from __future__ import annotations

import datetime as dt

import msgspec

from orchestration.ingest.storage.writer import Writer
from tests.factories import add_market
from tests.orchestration.ingest.builders import book, change, make_normalizer, token, trade
from upstream.polymarket.market_channel.socket import TickSize

START = dt.datetime(2026, 11, 2, 12, tzinfo=dt.UTC)
MS = int(START.timestamp() * 1000)
BIDS, ASKS = [(400_000, 5_000_000), (390_000, 1_000_000)], [(420_000, 2_000_000)]
HASHES = [f"{n:02x}" * 20 for n in range(10)]


def lived(conn):
    """Add a market with a book, changes, a trade and a finer tick size."""
    market = add_market(conn, "rain", raw={"orderMinSize": 7}, neg_risk=True, tick_size=1000)
    yes, no = (token(market["market_key"], outcome, name) for outcome, name in enumerate(market["token_ids"]))
    yes, no = (msgspec.structs.replace(each, market_id=market["market_id"]) for each in (yes, no))
    follower, writer = make_normalizer(yes, no, clock=lambda: MS / 1000 + 301), Writer(conn)
    for messages in (
        [book(yes, BIDS, ASKS, MS, HASHES[0])],
        [change(yes, 1, 410_000, 3_000_000, None, None, MS + 60_000, HASHES[1])],
        [
            change(yes, 1, 410_000, 0, None, None, MS + 61_000, HASHES[2]),
            change(yes, -1, 430_000, 9_500_000, None, None, MS + 61_000, HASHES[2]),
            book(no, [(580_000, 2_000_000)], [], MS + 61_000, HASHES[3]),
        ],
        [trade(yes, 420_000, 1_500_000, MS + 90_000, 1, "0x" + "ab" * 32)],
        [TickSize(yes.token_id, yes.market_id, MS + 100_000, 10_000, 1000)],
        [change(yes, -1, 415_000, 1_000_000, None, None, MS + 120_000, HASHES[4])],
        [book(of, BIDS, ASKS, MS + 300_000, HASHES[5]) for of in (yes, no)],
    ):
        follower.apply(messages)
        writer.write(follower.cut_batch())
    assert follower.counts.refused == 0
    market["tokens"] = [yes.token_id, no.token_id]
    return market
