"""Expected candles, whoever keeps them: a plain GROUP BY over the trades, after any changes to those.

The same steps run on both licences: here through psycopg, in tests/community through Node.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass

START = dt.datetime(2026, 11, 1, 22, 40, tzinfo=dt.UTC)  # so that steps cross a midnight, where a chunk ends
TABLES = ("candles_1m", "candles_1h")
COLUMNS = "bucket, market_key, outcome, open, high, low, close, volume, value_usd, trades, first_seq, last_seq"


def kept(table: str, since: str = "-infinity", until: str = "infinity") -> str:
    """Return a query for the candles that the database keeps, as one JSON text."""
    return _as_json(f"select {COLUMNS} from {table}", since, until)


def computed(table: str, since: str = "-infinity", until: str = "infinity") -> str:
    """Return a query for the same text from the trades, by nothing but GROUP BY."""
    unit = {"candles_1m": "minute", "candles_1h": "hour"}[table]
    query = f"""
        select
            date_trunc('{unit}', ts, 'UTC') as bucket, market_key, outcome,
            (array_agg(price order by seq))[1] as open, max(price) as high, min(price) as low,
            (array_agg(price order by seq desc))[1] as close, sum(size)::bigint as volume,
            sum(value_usd)::bigint as value_usd, count(*) as trades, min(seq) as first_seq, max(seq) as last_seq
        from trades
        group by 1, 2, 3
    """
    return _as_json(query, since, until)


def _as_json(query: str, since: str, until: str) -> str:
    return f"""
        select coalesce(json_agg(candle order by market_key, outcome, bucket), '[]')::text
        from ({query}) as candle
        where bucket >= '{since}' and bucket < '{until}'
    """


@dataclass(frozen=True)
class Trade:
    """A row of trades, with the columns relevant to candles."""

    at: float  # seconds after START
    market_key: int
    outcome: int
    trade_id: int
    seq: int
    price: int
    size: int

    def values(self) -> str:
        ts = (START + dt.timedelta(seconds=self.at)).isoformat()
        keys = f"'{ts}', {self.market_key}, {self.outcome}, {self.trade_id}, {self.seq}"
        return f"({keys}, 1, {self.price}, {self.size}, {self.price * self.size // 1_000_000})"


def insert(trades: list[Trade], conflict: str = "do nothing") -> str:
    """Return one statement for all of them, in the order of the unique index, as every writer of trades should use."""
    ordered = sorted(trades, key=lambda trade: (trade.market_key, trade.outcome, trade.at, trade.trade_id))
    return (
        "insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd) values "
        + ", ".join(trade.values() for trade in ordered)
        + f" on conflict {conflict}"
    )


def random_trades(seed: int, count: int, *, hours: float = 5, first_id: int = 1) -> list[Trade]:
    """Return trades of six markets, many at the same instant, so that only `seq` tells their order."""
    chance = random.Random(seed)
    crowded = [1200.0, 1259.999, 4800.0, 9000.5]
    instants = sorted(
        chance.choice([*crowded, *(chance.uniform(0, hours * 3600) for _ in range(8))]) for _ in range(count)
    )
    return [
        Trade(
            at=round(at, 3),
            market_key=chance.choice([1, 1, 1, 2, 2, 3, 4, 5, 6]),
            outcome=chance.randrange(2),
            trade_id=first_id + number,
            seq=((int(START.timestamp() * 1000) + round(at * 1000)) << 20) + number,
            price=chance.randrange(1_000, 1_000_000, 1_000),
            size=chance.randrange(1, 5_000_000_000),
        )
        for number, at in enumerate(instants)
    ]


@dataclass(frozen=True)
class Step:
    """A change of trades; `unchanged`: one that leaves the candles as they were."""

    name: str
    statements: tuple[str, ...]
    unchanged: bool = False


def steps() -> list[Step]:
    """Return the changes of a table over a day."""
    trades = random_trades(seed=7, count=1500)
    early, late = trades[:1100], trades[1100:]
    shuffled = random.Random(7).sample(early, len(early))
    added = "insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd)"
    upsert = "(market_key, outcome, ts, trade_id) do update set price = excluded.price, size = excluded.size"
    dearer = [
        Trade(trade.at, trade.market_key, trade.outcome, trade.trade_id, trade.seq, trade.price + 7, trade.size)
        for trade in trades[500:520]
    ]
    return [
        Step("trades in order", (insert(early[:500]),)),
        Step("trades in random order", tuple(insert(shuffled[at : at + 100]) for at in range(0, len(shuffled), 100))),
        Step("the same trades again", (insert(early),), unchanged=True),
        Step("later and late trades at once", (insert(late[::2] + late[1::2]),)),
        Step("a few trades deleted", ("delete from trades where trade_id % 17 = 0",)),
        Step(
            "all trades of a minute deleted",
            ("delete from trades where ts >= '2026-11-01 23:00' and ts < '2026-11-01 23:01'",),
        ),
        Step("all trades of a market deleted", ("delete from trades where market_key = 3",)),
        Step("prices corrected", ("update trades set price = 1000001 - price where trade_id % 13 = 0",)),
        Step(
            "a trade moved to another market",
            ("update trades set market_key = 7, outcome = 1 where trade_id % 29 = 0",),
        ),
        Step("the order of trades reversed", ("update trades set seq = -seq where market_key = 2",)),
        Step("hashes that became known", (r"update trades set tx_hash = '\x01' where market_key = 1",), unchanged=True),
        Step(
            "some inserted, some corrected, by one statement",
            (insert(dearer + random_trades(8, 40, first_id=5000), upsert),),
        ),
        Step(
            "trades moved by one statement",
            (
                f"""
                    with gone as (delete from trades where market_key = 4 returning *)
                    {added} select ts, 8, outcome, trade_id, seq, side, price, size, value_usd from gone
                """,
            ),
        ),
        Step("nothing deleted", ("delete from trades where market_key = 99",), unchanged=True),
    ]


# Retention, last: from then on the trades no longer contain the candles of the first day.
RETENTION = "2026-11-02 00:00+00"
DROP = f"select drop_chunks('trades', '{RETENTION}'::timestamptz)"
AFTER = insert(
    [Trade(7200 + number, 1, 0, 9000 + number, (1 << 62) + number, 500_000 + number, 1_000_000) for number in range(50)]
)
