"""Random histories of a run that takes over from another, as the exchange sends them and as the tables hold them."""

import asyncio
import itertools
import json
import random
from types import SimpleNamespace

import msgspec

from orchestration.feeds.lease import FeedLease
from orchestration.ingest.clock import ExchangeClock
from orchestration.ingest.committer import Committer
from orchestration.ingest.deferral import DeferringNormalizer
from orchestration.ingest.gaps.from_data_api import GapFiller
from orchestration.ingest.gaps.from_standby import StandbyGapFiller
from orchestration.ingest.gaps.losses import Loss, Losses
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.sockets.pulse import Pulse
from orchestration.ingest.storage.backlog import Backlog
from orchestration.ingest.storage.leader import LeaderConnection
from tests import stream_rows
from tests.orchestration.ingest.builders import UNREACHABLE, save, token
from upstream.polymarket.market_channel import outgoing
from upstream.polymarket.market_channel.socket import parse
from upstream.transport.micro import ONE, text

MARKETS = 4
STEPS = 350
ENOUGH = 10_000_000  # bytes
TABLES = (
    "trades",
    "book_events",
    "quotes",
    "tick_sizes",
    "live_books",
    "live_prices",
    "stream_blocks",
    "feed_leases",
    "coverage_gaps",
    "quarantine",
)


class Market:
    """The exchange's side of a market: its book, and frames as the exchange sends them."""

    def __init__(self, key, dice, now_ms):
        self.tokens = token(key, 0, str(7 * 10**76 + key)), token(key, 1, str(8 * 10**76 + key))
        self.dice = dice
        self.bids = {at * 10_000: 5 * ONE for at in range(40, 50, 3)}
        self.asks = {at * 10_000: 5 * ONE for at in range(51, 60, 3)}
        self.tick = 10_000
        self.trading = 1.2
        self.ts_ms = now_ms

    def frames(self, ts_ms):
        """Return the frames of one order."""
        ts_ms = self.ts_ms = max(self.ts_ms, ts_ms)
        dice, before = self.dice, (max(self.bids), min(self.asks))
        chance = dice.random()
        if chance < 0.02:
            self.tick, old = (1_000 if self.tick == 10_000 else 10_000), self.tick
            return [
                outgoing.TickSizeChange(each.market_id, each.token_id, text(old), text(self.tick), str(ts_ms))
                for each in self.tokens
            ]
        if chance < 0.15 and dice.random() < self.trading:
            self.trading -= 0.2  # later on nobody trades, and the last trades are old ones
            return [*self.trade(ts_ms), *(self.book(each, ts_ms) for each in (0, 1)), self.change(ts_ms, top=True)]
        if chance < 0.35:
            return [self.book(dice.randrange(2), ts_ms)]  # of one token only
        frames = [self.change(ts_ms, top=False)]
        after = max(self.bids), min(self.asks)
        return [*frames, *self.best(*after, ts_ms)] if after != before else frames

    def change(self, ts_ms, *, top):
        dice, levels = self.dice, []
        for _ in range(dice.choice([1, 1, 1, 2])):
            side = "BUY" if dice.random() < 0.5 else "SELL"
            held = self.bids if side == "BUY" else self.asks
            price = (
                dice.choice(list(held)) if top else 10_000 * dice.randint(*((35, 50) if side == "BUY" else (51, 65)))
            )
            size = 0 if dice.random() < 0.3 and len(held) > 2 else dice.randint(1, 99) * ONE
            held.pop(price, None) if size == 0 else held.update({price: size})
            levels.append((side, price, size))
        bid, ask = max(self.bids), min(self.asks)
        entries = []
        for side, price, size in levels:
            first, second = (each.token_id for each in self.tokens)
            other = "SELL" if side == "BUY" else "BUY"
            digest = f"{dice.getrandbits(160):040x}"
            entries += [
                outgoing.LevelChange(first, text(price), text(size), side, digest, text(bid), text(ask)),
                outgoing.LevelChange(
                    second, text(ONE - price), text(size), other, digest, text(ONE - ask), text(ONE - bid)
                ),
            ]
        return outgoing.PriceChange(self.tokens[0].market_id, entries, str(ts_ms))

    def trade(self, ts_ms):
        for _ in range(self.dice.choice([1, 2])):
            of, price, tx = self.dice.choice(self.tokens), text(min(self.asks)), f"0x{self.dice.getrandbits(256):064x}"
            yield outgoing.LastTradePrice(of.market_id, of.token_id, price, text(3 * ONE), "BUY", str(ts_ms), tx)

    def best(self, bid, ask, ts_ms):
        of = self.tokens[0]
        yield outgoing.BestBidAsk(of.market_id, of.token_id, text(bid), text(ask), text(ask - bid), str(ts_ms))

    def book(self, outcome, ts_ms):
        bids, asks = self.bids, self.asks
        if outcome:
            bids, asks = ({ONE - price: size for price, size in side.items()} for side in (asks, bids))
        levels = [[outgoing.OutgoingLevel(text(p), text(s)) for p, s in sorted(side.items())] for side in (bids, asks)]
        return outgoing.BookMessage(
            market=self.tokens[0].market_id,
            asset_id=self.tokens[outcome].token_id,
            timestamp=str(ts_ms),
            hash=f"{self.dice.getrandbits(160):040x}",
            bids=levels[0],
            asks=levels[1][::-1],
            min_order_size="5",
            tick_size=text(self.tick),
            neg_risk=False,
        )


class Socket:
    """What a listener knows of its connection."""

    def __init__(self):
        self.greeted, self.open, self.newest_ms, self.pulse = False, True, 0, Pulse(0.0)


class Run:
    """A run of the feed without sockets: what it receives is handed to it."""

    def __init__(self, url, clock, run_id, *, began_ms, defers=False, max_kept_bytes=ENOUGH, capacity=50_000_000):
        exchange = ExchangeClock(clock)
        self.normalizer = (
            DeferringNormalizer(clock, exchange=exchange, max_kept_bytes=max_kept_bytes)
            if defers
            else Normalizer(clock, exchange=exchange)
        )
        self.normalizer.defers = defers
        self.backlog, self.losses, self.socket = Backlog(capacity), Losses(run_id), Socket()
        self.filler = GapFiller(url, "polymarket", run_id, UNREACHABLE)
        subscriptions = SimpleNamespace(of_token=_Always(self.socket))
        self.standby_filler = StandbyGapFiller(self.normalizer, subscriptions, self.backlog, self.filler, in_thread)
        self.leader = LeaderConnection(url, "polymarket")
        self.committer = Committer(
            self.normalizer,
            self.backlog,
            self.losses,
            self.leader,
            self.standby_filler,
            in_thread=in_thread,
            socket_newest_ms=lambda: [self.socket.newest_ms or began_ms],
            run_id=run_id,
            book_flush_s=1.0,
            ring_s=1,
            begun=set(),
        )
        self.committer.leases = []

    def receive(self, frame):
        if not (self.normalizer.defers and self.normalizer.keep(self.socket, frame, 0.0)):
            self.socket.newest_ms = max(self.socket.newest_ms, self.normalizer.apply(parse(frame)))

    def tick(self, *, may_lead):
        asyncio.run(self.committer.tick(ready=True, may_lead=may_lead))

    def close(self):
        self.leader.resign()
        self.filler.close()


class _Always(dict):
    def __init__(self, value):
        self.get = lambda _: value


async def in_thread(call, *args, **named):
    return call(*args, **named)


def array(messages):
    return b"[" + b",".join(map(msgspec.json.encode, messages)) + b"]"


def play(url, conn, seed, began_ms, *, defers, max_kept_bytes=ENOUGH):  # noqa: C901 (one history after the other)
    """Play a history in which a standby takes over from a leader; return all that is stored.

    It begins at `began_ms`, which is now: readers of books look back a quarter of an hour by the database's clock.
    """
    conn.execute("truncate " + ", ".join(TABLES))
    conn.execute("update stage_clocks set detail = '{}' where stage = 'ingestion'")
    dice, now = random.Random(seed), [began_ms / 1000]
    markets = [Market(key, dice, began_ms) for key in range(1, MARKETS + 1)]
    leader = Run(url, lambda: now[0], "leader", began_ms=began_ms)
    standby = Run(url, lambda: now[0], "standby", began_ms=began_ms, defers=defers, max_kept_bytes=max_kept_bytes)
    lease = FeedLease(url, "polymarket", "leader", 600.0)
    kept, dropped, leads, overtaken = 0, False, True, 0
    takeover = dice.randint(STEPS // 3, STEPS - 20)
    deaf = dice.randint(20, STEPS) if dice.random() < 0.5 else -1  # the leader misses what is sent for a while
    lost = dice.randint(20, STEPS) if dice.random() < 0.3 else -1  # the standby's socket is lost for a moment
    missed = None
    held: dict[Market, tuple[str, bytes]] = {}  # instant and frame of a full book that a later change overtakes
    try:
        for run in (leader, standby):
            for each in itertools.chain.from_iterable(market.tokens for market in markets):
                run.normalizer.follow(each, 10_000)
            run.receive(array(market.book(outcome, began_ms) for market in markets for outcome in (0, 1)))
        leader.tick(may_lead=True)
        assert leader.committer.leading
        for step in range(STEPS):
            now[0] += dice.choice([0.0, 0.001, 0.1, 0.6])
            now_ms = int(now[0] * 1000)
            market = dice.choice([markets[0], *markets])
            frames = []
            for message in market.frames(now_ms - dice.randint(0, 3)):
                frame = msgspec.json.encode(message)
                if dice.random() < 0.03:
                    frame = array([message])
                if market not in held and message.event_type == "book" and dice.random() < 0.1:
                    held[market] = message.timestamp, frame
                    continue
                frames.append(frame)
                if message.event_type == "price_change" and market in held and held[market][0] < message.timestamp:
                    frames.append(held.pop(market)[1])
                    overtaken += 1
            for frame in frames:
                if leads and not deaf <= step < deaf + 6:
                    leader.receive(frame)
                for _ in range(2 if dice.random() < 0.05 else 1):
                    standby.receive(frame)
            if step == deaf and leads:
                missed = leader.losses.add(Loss.of("closed", [each for m in markets for each in m.tokens], now_ms - 20))
            if missed is not None and step == deaf + 6:
                leader.receive(array(m.book(outcome, now_ms) for m in markets for outcome in (0, 1)))
                missed.to_ms = now_ms + 1
            if step == lost and step < takeover - 40:
                standby.normalizer.invalidate([each.token_id for m in markets[1:3] for each in m.tokens])
                standby.receive(array(m.book(outcome, now_ms) for m in markets[1:3] for outcome in (0, 1)))
            if leads and dice.random() < 0.2:
                leader.tick(may_lead=True)
                save(leader.losses, conn, now_ms)
                lease.touch("leader", {"written_ms": leader.committer.committed_ms()}, ready=True)
            if dice.random() < 0.3:
                standby.tick(may_lead=not leads)
            if leads and dice.random() < 0.2:
                standby.tick(may_lead=False)  # a gap is filled long after a tick, and known before the ring is pruned
                asyncio.run(standby.standby_filler.fill_closed_gaps(now_ms))
                standby.committer.stand_by(leader.committer.committed_ms())
            kept = max(kept, standby.normalizer.kept_bytes)
            dropped |= defers and any(each.shortened for each in standby.normalizer._markets.values())
            if step == takeover:
                leads = False
                lease.touch("gone", {"written_ms": leader.committer.committed_ms()}, ready=False)
                leader.leader.resign()
        standby.tick(may_lead=True)
        now[0] += 2.0
        standby.tick(may_lead=True)
        asyncio.run(standby.committer.drain())
        assert standby.committer.leading
        assert standby.normalizer.kept_bytes == 0
        assert standby.losses.all == [], "nothing was missed"
        assert (kept > 0) == defers
        assert overtaken > 0
        assert dropped or not defers or max_kept_bytes < ENOUGH
        counts = standby.normalizer.counts
        return {**stored(conn, markets), "counts": [counts.messages, counts.mismatches, counts.refused]}
    finally:
        lease.close()
        for run in (leader, standby):
            run.close()


def stored(conn, markets):
    """Return what is stored and streamed, without what differs between any two runs: sequence, ages, when written."""
    queries = {
        "trades": "select ts, market_key, outcome, trade_id, seq, side, price, size, tx_hash from trades",
        "book events": "select ts, market_key, outcome, event_id, seq, side, price, size, hash, bid_prices, bid_sizes,"
        " ask_prices, ask_sizes from book_events",
        "quotes": "select ts, market_key, outcome, bid, ask, bid_size, ask_size from quotes",
        "ticks": "select ts, market_key, outcome, tick_size from tick_sizes",
        "books": "select market_key, outcome, verified, tick_size, ts, hash, bid_prices, bid_sizes, ask_prices,"
        " ask_sizes from book_current",
        "prices": "select market_key, outcome, bid, ask, bid_size, ask_size, last, last_ts, ts from live_prices",
        "gaps": "select kind, market_key, cause, from_ts, to_ts, filled_by from coverage_gaps",
        "quarantine": "select source, reason from quarantine",
    }
    found = {name: sorted(map(repr, conn.execute(query).fetchall())) for name, query in queries.items()}
    tokens = [each for market in markets for each in market.tokens]
    streamed, books = [], {}
    for row in stream_rows.rows(conn, known=tokens):
        message = json.loads(row.message)
        message.pop("seq")
        data = message["data"]
        data.pop("age_ms", None)
        if data.get("kind"):
            book = books.setdefault(data["token_id"], {})
            if data["kind"] == "snapshot":
                book.clear()
            for side in ("bids", "asks"):
                book.update({(side, level["price"]): level["size"] for level in data[side]})
            if data["kind"] == "delta":  # what a run repeats of levels that have not changed is its own affair
                del data["bids"], data["asks"]
        streamed.append(json.dumps(message, sort_keys=True))
    followed = [f"{of} {at} {size}" for of, book in books.items() for at, size in book.items() if size]
    return {**found, "streamed": sorted(streamed), "books as subscribers have them": sorted(followed)}


def differences(one, other):
    return {
        name: (sorted(set(rows) - set(other[name])), sorted(set(other[name]) - set(rows)))
        for name, rows in one.items()
        if rows != other[name]
    }
