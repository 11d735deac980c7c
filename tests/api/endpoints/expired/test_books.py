"""Books of moments that have expired in the database are rebuilt from the lake, in the same bytes."""

from __future__ import annotations

import datetime as dt
import random
from operator import itemgetter
from pathlib import Path

from orchestration.maintenance import packs
from sql import database
from tests.api.endpoints.expired.conftest import DAYS, FIRST, HOT_FROM, drop, say
from tests.effort import examples
from tests.factories import insert

DAY_MS = 86_400_000
PRICES = range(10_000, 1_000_000, 10_000)
BOOKS = ("book_events", "book_packs", "book_anchors", "quotes")


class History:
    """Adds the events of an outcome as the feed stores them: whole books, changes, quotes, and books kept meanwhile."""

    def __init__(self, conn, market_key, outcome, dice):
        self.conn, self.key, self.dice = conn, {"market_key": market_key, "outcome": outcome}, dice
        self.bids, self.asks, self.seq = {}, {}, 0

    def _row(self, table, at, **columns):
        self.seq += 1
        seq = {} if table == "quotes" else {"seq": self.seq}
        ids = {"event_id": self.dice.getrandbits(60)} if table == "book_events" else {}
        insert(self.conn, table, {"ts": at, **self.key, **seq, **ids, **columns})

    def _levels(self):
        bids, asks = sorted(self.bids.items(), reverse=True), sorted(self.asks.items())
        names = ("bid_prices", "bid_sizes", "ask_prices", "ask_sizes")
        columns = ([price for price, _ in bids], [size for _, size in bids], [p for p, _ in asks], [s for _, s in asks])
        return dict(zip(names, columns, strict=True))

    def _size(self):
        return self.dice.randrange(1, 10**10)

    def whole(self, at):
        self.bids = {price: self._size() for price in self.dice.sample(PRICES[:45], 5)}
        self.asks = {price: self._size() for price in self.dice.sample(PRICES[55:], 5)}
        self._row("book_events", at, hash=self.dice.randbytes(20), **self._levels())
        self.quote(at)

    def change(self, at):
        side = self.dice.choice([1, -1])
        levels, prices = (self.bids, PRICES[:49]) if side > 0 else (self.asks, PRICES[51:])
        price = self.dice.choice([*levels, *self.dice.sample(prices, 3)])
        size = 0 if price in levels and len(levels) > 1 and self.dice.random() < 0.5 else self._size()
        levels[price] = size
        if not size:
            del levels[price]
        hash_ = self.dice.randbytes(20) if self.dice.random() < 0.5 else None
        self._row("book_events", at, side=side, price=price, size=size, hash=hash_)
        if self.dice.random() < 0.9:  # else the exchange's best prices are others
            self.quote(at)

    def keep(self, at):
        self._row("book_anchors", at, **self._levels())

    def quote(self, at):
        bid, ask = max(self.bids), min(self.asks)
        self.conn.execute(
            "insert into quotes (ts, market_key, outcome, bid, ask, mid) values (%s, %s, %s, %s, %s, %s)"
            " on conflict (market_key, outcome, ts) do update set bid = excluded.bid, ask = excluded.ask",
            [at, *self.key.values(), bid, ask, (bid + ask) // 2],
        )


def history(conn, add_market):
    """Add four days of books: a busy market, one that changes once, one that ends; packed, where the licence packs."""
    dice = random.Random(11)
    for slug, changes, span in (("busy", 300, DAYS), ("quiet", 1, 1), ("ended", 40, DAYS - 1)):
        market = add_market(slug)
        for outcome in (0, 1):
            seen = History(conn, market["market_key"], outcome, dice)
            seen.whole(FIRST + dt.timedelta(hours=2, seconds=outcome))
            instants = [dice.randrange(3 * 3_600_000, span * DAY_MS) for _ in range(changes)]
            midnights = [n * DAY_MS for n in range(1, span)]
            around = [(ms - 1_500, seen.change) for ms in midnights] + [(ms + 2_000, seen.keep) for ms in midnights]
            does = sorted([*((ms, seen.change) for ms in instants), *around], key=itemgetter(0))
            for number, (ms, do) in enumerate(does):
                at = FIRST + dt.timedelta(milliseconds=ms)
                do(at)
                if number % 50 == 20:
                    seen.keep(at + dt.timedelta(milliseconds=1))
                if number % 120 == 100:
                    seen.whole(at + dt.timedelta(seconds=7))
    gap = {"kind": "books", "cause": "a test"}
    noon = FIRST + dt.timedelta(hours=12)
    insert(conn, "coverage_gaps", {**gap, "from_ts": noon, "to_ts": noon + dt.timedelta(hours=1)})
    if database.license(conn) == "apache":
        assert packs.bring_up_to_date(conn, HOT_FROM + dt.timedelta(days=1, hours=7)).finished


def questions(number):
    dice = random.Random(3)

    def ms(low, high):
        return int((FIRST + dt.timedelta(seconds=dice.uniform(low, high))).timestamp() * 1000)

    for _ in range(number):
        slug, outcome = dice.choice(["busy", "busy", "quiet", "ended"]), dice.choice([0, 1])
        if dice.random() < 0.7:
            low, high = dice.choice(
                [(-3_600, (DAYS + 1) * 86_400), *((n * 86_400, n * 86_400 + 300) for n in (1, 2, 3))]
            )
            yield f"/v1/markets/{slug}/orderbook", {"outcome": outcome, "at": ms(low, high)}
        else:
            since = ms(-3600, DAYS * 86_400)
            span, step = dice.choice([(60, 5), (3_600, 300), (80_000, 3_600)])
            range_ = {"from": since, "to": since + span * 1000, "step": step, "depth": 3}
            yield f"/v1/markets/{slug}/orderbook/history", {"outcome": outcome, **range_}


def answers(client, asked):
    found = [client.ask(path, **parameters) for path, parameters in asked]
    return [(answer.status_code, answer.text if answer.status_code == 200 else "") for answer in found]


def test_books_are_the_same_before_and_after_they_expire(conn, asking, given, write, add_market):
    history(conn, add_market)
    asked = list(questions(examples(80, 1000)))
    before = answers(asking(), asked)

    write()
    say(conn, given)
    in_both = answers(asking(), asked)
    dropped = drop(conn, given)

    assert dropped["quotes"] == DAYS - 1
    for name in ("book_events", "book_packs", "book_anchors", "quotes"):
        assert conn.execute(f"select count(*) from {name} where ts < %s", [HOT_FROM]).fetchone() == (0,)
    after = answers(asking(), asked)
    statuses = [status for status, _ in before]
    assert statuses.count(200) > len(asked) * 0.9, statuses
    assert {status for status, _ in before} <= {200, 404}
    for question, *each in zip(asked, before, in_both, after, strict=True):
        assert each[1] == each[0], question
        assert each[2] == each[0], question
    assert any('"status":"gap"' in text for _, text in after)
    assert any('"status":"verified"' in text for _, text in after)


def test_a_book_whose_file_cannot_be_read_is_not_rebuilt_from_the_rest(conn, asking, given, write, add_market):
    history(conn, add_market)
    write()
    say(conn, given)
    drop(conn, given)
    noon = FIRST + dt.timedelta(days=1, hours=12)
    for name in ("book_packs", "book_anchors"):
        for file in Path(given.lake, name).rglob(f"{noon:%Y-%m-%d}*.parquet"):
            file.unlink()

    answer = asking().ask("/v1/markets/busy/orderbook", at=int(noon.timestamp() * 1000))

    assert (answer.status_code, answer.json["code"]) == (503, "overloaded")
    assert "expired" in answer.json["detail"]


def test_a_moment_before_the_first_book_of_all_is_said_to_have_none(conn, asking, given, write, add_market):
    history(conn, add_market)
    write()
    say(conn, given)
    drop(conn, given)

    answer = asking().ask("/v1/markets/busy/orderbook", at=int(FIRST.timestamp() * 1000) - 3_600_000)

    assert answer.status_code == 404
    assert answer.json["hint"] is None
