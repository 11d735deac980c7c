"""What the feed publishes takes few bytes, measured on what the exchange once sent."""

from __future__ import annotations

import gzip
import heapq
import json
import random
from datetime import UTC, datetime
from itertools import groupby

from orchestration.ingest.storage import messages
from orchestration.ingest.storage.rows import Token
from sql import stream_blocks
from sql.stream_reader import StoredBlock, StreamReader
from tests.orchestration.ingest.builders import make_normalizer, trade
from tests.upstream import recordings
from upstream.polymarket.market_channel.frames import parse

MAX_BYTES = 60
MESSAGES = 1_000  # of a block: what the venue causes in 150 ms
FLUSH_MS = 150
GAMES = 8
FASTER = 20  # a recording is a game of hours, here of minutes
START = 1_790_000_000_000


def published(recorded):
    """Yield what the feed publishes of some games at once, with a trade for every twenty messages."""
    dice, clock, tokens, games = random.Random(1), [0.0], {}, []
    normalizer = make_normalizer(clock=lambda: clock[0])
    for path in recordings.captures(recorded)[:GAMES]:
        sent = [message for message, _ in recordings.capture(path)]
        first = int(sent[0]["timestamp"])
        market_id = f"0x{dice.getrandbits(256):064x}"  # some games were recorded twice
        for message in sent:
            place = (path.name, message["asset_id"])
            if place not in tokens:
                outcome = sum(name == path.name for name, _ in tokens)
                key = 1_000 + 37 * len(games)
                tokens[place] = Token(str(dice.getrandbits(255)), market_id, key, outcome)
                normalizer.follow(tokens[place])
            at = START + (int(message["timestamp"]) - first) // FASTER
            message |= {"market": market_id, "asset_id": tokens[place].token_id, "timestamp": str(at)}
        games.append(sorted(sent, key=lambda message: message["timestamp"]))
    moment = lambda message: int(message["timestamp"])  # noqa: E731
    for tick, together in groupby(heapq.merge(*games, key=moment), lambda message: moment(message) // FLUSH_MS):
        clock[0] = (tick + 1) * FLUSH_MS / 1000
        for message in together:
            normalizer.apply(parse(json.dumps([message]).encode()))
            if message["event_type"] != "book" and dice.random() < 0.05:
                change = message["changes"][0]
                price, size = (round(float(change[name]) * 10**6) for name in ("price", "size"))
                of = normalizer.states[message["asset_id"]].token
                normalizer.apply([trade(of, price, size, moment(message), tx_hash=f"0x{dice.getrandbits(256):064x}")])
        batch = normalizer.cut_batch()
        yield from map(messages.trade, batch.trades)
        yield from messages.deltas(batch.changes)
        yield from (messages.price(row, int(clock[0] * 1000)) for row in batch.prices.values())


def test_a_message_of_the_feed_takes_sixty_bytes_at_most(recorded):
    told = list(published(recorded))
    known = {(message.market, message.outcome) for message in told}
    ids = [(key, outcome, f"0x{key:064x}", f"{key:077}") for key, outcome in known]
    reader = StreamReader(lambda *_: ids)
    blocks = [stream_blocks.pack(told[start : start + MESSAGES]) for start in range(0, len(told) - MESSAGES, MESSAGES)]
    text, zipped = 0, 0
    for data in blocks:
        row = StoredBlock(1, MESSAGES, datetime.now(UTC), data)
        served = [event.message for event in reader.unpack(None, [row], 0, MESSAGES).events]
        text += sum(map(len, served))
        zipped += len(gzip.compress(b"\n".join(served), 6))

    count, packed = len(blocks) * MESSAGES, sum(map(len, blocks))
    kinds = {kind: sum(message.type == kind for message in told) for kind in ("trade", "price", "orderbook")}
    sizes = " ".join(f"{size / count:.1f}" for size in (packed, zipped, text))
    print(f"bytes of each of {count:,} messages {kinds}, in blocks, gzipped and plain: {sizes}")
    assert min(kinds.values()) > 500
    assert count >= 10_000
    assert packed / count <= MAX_BYTES
