"""Market histories: generated from a seed, held as plain rows, and written to the database."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests import factories

END = datetime(2026, 3, 10, 15, 0, tzinfo=UTC)
MINUTE_MS = 60_000
LEVELS = (0, 3, 5, 5, 5, 7)  # of a side of a book


def instant(ms):
    return datetime.fromtimestamp(ms / 1000, UTC)


def millis(at):
    return round(at.timestamp() * 1000)


@dataclass
class History:
    """Rows of some markets: trades, quotes, books, changes of state, gaps."""

    trades: list = field(default_factory=list)  # market, outcome, ts_ms, seq, price, size, value
    quotes: list = field(default_factory=list)  # market, outcome, ts_ms, bid, ask
    books: list = field(default_factory=list)  # market, outcome, ts_ms, seq, bid_sizes, ask_sizes
    changes: list = field(default_factory=list)  # market, ts_ms, from, to
    gaps: list = field(default_factory=list)  # kind, market or None, from_ms, to_ms or None, filled_ms or None
    markets: list = field(default_factory=list)  # keys, once they are stored
    ids: dict = field(default_factory=dict)
    statuses: dict = field(default_factory=dict)  # by number: the market's current state
    ends: dict = field(default_factory=dict)  # by number: its planned end (ms), if known

    def trade(self, market, ts_ms, price, size, outcome=0):
        price, size = max(1000, min(999_000, round(price * 1e6, -3))), round(size * 1e6)
        price = int(price)
        row = (market, outcome, ts_ms, ts_ms << 20 | len(self.trades) % 1000, price, size, price * size // 1_000_000)
        self.trades.append(row)

    def quote(self, market, ts_ms, bid, ask, outcome=0):
        def micro(price):
            return None if price is None else int(max(1000, min(999_000, round(price * 1e6, -3))))

        self.quotes.append((market, outcome, ts_ms, micro(bid), micro(ask)))

    def book(self, market, ts_ms, bids, asks, outcome=0):
        self.books.append(
            (
                market,
                outcome,
                ts_ms,
                ts_ms << 20 | len(self.books) % 1000,
                [round(size * 1e6) for size in bids],
                [round(size * 1e6) for size in asks],
            )
        )

    def store(self, conn):
        """Write everything; rows name markets by number from 0, the database by key."""
        count = 1 + max([row[0] for row in self.trades + self.quotes + self.books], default=0)
        for number in range(count):
            end = instant(self.ends[number]) if number in self.ends else None
            row = factories.add_market(conn, status=self.statuses.get(number, "ACTIVE"), end_time=end)
            self.markets.append(row["market_key"])
            self.ids[row["market_key"]] = row["market_id"]
        with conn.cursor() as cursor:
            with cursor.copy(
                "copy trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd) from stdin"
            ) as copy:
                for n, (market, outcome, ts, seq, price, size, value) in enumerate(self.trades):
                    copy.write_row((instant(ts), self.markets[market], outcome, n, seq, 1, price, size, value))
            with cursor.copy("copy quotes (ts, market_key, outcome, bid, ask, mid) from stdin") as copy:
                seen = {}
                for market, outcome, ts, bid, ask in self.quotes:
                    seen[market, outcome, ts] = bid, ask
                for (market, outcome, ts), (bid, ask) in seen.items():
                    mid = None if bid is None or ask is None else (bid + ask) // 2
                    copy.write_row((instant(ts), self.markets[market], outcome, bid, ask, mid))
                self.quotes = [(*key, *prices) for key, prices in seen.items()]
            with cursor.copy(
                "copy book_events (ts, market_key, outcome, event_id, seq, bid_sizes, ask_sizes) from stdin"
            ) as copy:
                for n, (market, outcome, ts, seq, bids, asks) in enumerate(self.books):
                    copy.write_row((instant(ts), self.markets[market], outcome, n, seq, bids, asks))
            cursor.executemany(
                "insert into market_status_changes (market_key, ts, from_status, to_status, cause) "
                "values (%s, %s, %s, %s, 'test')",
                [(self.markets[m], instant(ts), before, after) for m, ts, before, after in self.changes],
            )
            cursor.executemany(
                "insert into coverage_gaps (kind, market_key, from_ts, to_ts, filled_at, cause) "
                "values (%s, %s, %s, %s, %s, 'test')",
                [
                    (
                        kind,
                        None if m is None else self.markets[m],
                        *(None if t is None else instant(t) for t in times),
                    )
                    for kind, m, *times in self.gaps
                ],
            )
        conn.execute("update stage_clocks set last_data_at = '2100-01-01' where stage = 'ingestion'")


def quiet(history, market, dice, *, until=END, hours=26, a_minute=0.5, step=0.001, price=0.5, spread=0.01, usd=40.0):
    """A market without events: a random walk, steady trading, a spread of one or two ticks, an even book."""
    start = millis(until - timedelta(hours=hours))
    at = price
    for minute in range(hours * 60):
        opens = start + minute * MINUTE_MS
        at = min(0.95, max(0.05, at + dice.gauss(0, step)))
        if dice.random() < 0.5:
            middle, half = round(at, 3), spread / 2 + dice.choice((0, 0, 0, 0.001))
            history.quote(market, opens + dice.randrange(MINUTE_MS), middle - half, middle + half)
        for _ in range(arrivals(dice, a_minute)):
            ts = opens + dice.randrange(MINUTE_MS)
            # A trade is made at the best price of either side.
            paid = at + dice.choice((-1, 1)) * spread / 2
            history.trade(market, ts, paid, dice.lognormvariate(0, 1) * usd / 1.65 / at)
            sizes = [[dice.uniform(300, 1000) for _ in range(8)] for _ in range(2)]
            history.book(market, ts + 1, *sizes)
    return at


def arrivals(dice, rate):
    """Return how many arrivals there are in a unit of time (Poisson)."""
    count, left = 0, dice.expovariate(rate)
    while left < 1:
        count += 1
        left += dice.expovariate(rate)
    return count


def wild(seed, minutes):
    """Markets with all kinds of events and missing data, in the last `minutes` before END and before."""
    dice = random.Random(seed)
    history = History()
    for market in range(dice.randint(1, 4)):
        Wild(history, market, dice, minutes).live(hours=dice.choice((2, 9, 20, 30)))
        if dice.random() < 0.3:
            change_states(history, market, dice, minutes)
        elif dice.random() < 0.1:
            history.statuses[market] = "RESOLVED"
        if dice.random() < 0.5:
            history.ends[market] = millis(END) + dice.choice((-10, 5, 30, 600, 20_000)) * MINUTE_MS
    for _ in range(dice.choice((0, 0, 1, 3))):
        leave_gap(history, dice, minutes)
    return history


class Wild:
    """A market that keeps changing its behaviour."""

    def __init__(self, history, market, dice, minutes):
        self.history, self.market, self.dice, self.minutes = history, market, dice, minutes
        self.rate = dice.choice((0.02, 0.1, 0.4))
        self.at, self.spread, self.lean = dice.uniform(0.1, 0.9), dice.choice((0.002, 0.01, 0.04)), 0.0
        self.surge, self.target, self.pull = 1.0, self.at, 0.0
        self.outcomes = (0, 1) if dice.random() < 0.7 else (0,)

    def live(self, hours):
        minute = -hours * 60
        while minute < 0:
            recent = minute > -self.minutes - 70
            self.turn(recent=recent)
            self.pass_a_minute(millis(END) + minute * MINUTE_MS, recent=recent)
            minute += 1 if self.dice.random() < 0.97 else self.dice.randint(2, 40)  # in which nothing happens

    def turn(self, *, recent):
        dice = self.dice
        if dice.random() < (0.05 if recent else 0.005):
            self.target, self.pull = dice.uniform(0.05, 0.95), dice.choice((0.0, 0.1, 0.5))
        if recent and dice.random() < 0.04:
            self.spread = dice.choice((0.002, 0.01, 0.03, 0.06, 0.12))
        if recent and dice.random() < 0.05:
            self.lean = dice.choice((0.0, -0.9, 0.9, 0.5))
        if recent and dice.random() < 0.05:
            self.surge = dice.choice((0.3, 1.0, 6.0, 12.0))
        self.at += self.pull * (self.target - self.at) + dice.gauss(0, 0.002)
        self.at = min(0.97, max(0.03, self.at))

    def pass_a_minute(self, opens, *, recent):
        dice, bid, ask = self.dice, self.at - self.spread / 2, self.at + self.spread / 2
        for _ in range(arrivals(dice, 0.4 if recent else 0.05)):
            empty = dice.random()
            sides = None if empty < 0.05 else bid, None if empty > 0.95 else ask
            self.history.quote(self.market, opens + dice.randrange(MINUTE_MS), *sides)
        for _ in range(arrivals(dice, self.rate * (self.surge if recent else 1))):
            outcome, ts = dice.choice(self.outcomes), opens + dice.randrange(MINUTE_MS)
            paid = (self.at if outcome == 0 else 1 - self.at) + dice.gauss(0, 0.004)
            self.history.trade(self.market, ts, paid, dice.lognormvariate(4, 1), outcome)
            bids = [dice.uniform(10, 100) * (1 + self.lean) for _ in range(dice.choice(LEVELS))]
            asks = [dice.uniform(10, 100) * (1 - self.lean) for _ in range(dice.choice(LEVELS))]
            self.history.book(self.market, ts + 1, bids, asks, outcome)


def change_states(history, market, dice, minutes):
    """Close, resolve and reopen a market recently."""
    state = "ACTIVE"
    for ts in sorted(millis(END) - dice.randrange(minutes * MINUTE_MS) for _ in range(dice.randint(1, 3))):
        other = dice.choice([each for each in ("ACTIVE", "CLOSED", "RESOLVED") if each != state])
        history.changes.append((market, ts, state, other))
        state = other
    history.statuses[market] = state


def leave_gap(history, dice, minutes):
    """Add a gap: of a market or of all, open or over, filled since or not."""
    ended = millis(END) - dice.randrange((minutes + 90) * MINUTE_MS)
    began = ended - dice.choice((10_000, 100_000, 200_000, 7_200_000))
    filled = dice.choice((None, None, ended + dice.randrange(3_600_000)))
    history.gaps.append(
        (
            dice.choice(("trades", "books")),
            dice.choice((None, 0)),
            began,
            dice.choice((None, ended)),
            filled,
        )
    )
