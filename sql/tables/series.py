"""Time series of the exchange, data computed from them, and the stream."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    text,
)

from sql.tables.base import Time, metadata


def newest(table: str, column: str) -> Index:
    """Return an index for the newest rows of all markets: rows arrive in order, so one entry per megabyte is enough.

    Megabytes that have no entry yet are read; the newest ones have none.
    """
    return Index(f"{table}_{column}_idx", column, postgresql_using="brin", postgresql_with={"autosummarize": "on"})


trades = Table(
    "trades",
    metadata,
    Column("ts", Time, nullable=False),
    Column("market_key", Integer, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column("trade_id", BigInteger, nullable=False, comment="Digest of what the trade is; the same from every source"),
    Column("seq", BigInteger, nullable=False, comment="Orders by time and, within an instant, by arrival"),
    Column("side", SmallInteger, nullable=False, comment="The taker's: 1 BUY, -1 SELL"),
    Column("price", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("value_usd", BigInteger, nullable=False),
    Column("tx_hash", LargeBinary),
    Index("trades_market_idx", "market_key", "outcome", "ts", "trade_id", unique=True),
    Index("trades_ts_idx", text("ts desc")),
    info={"timescale": "hypertable", "time": "ts", "chunk": "1 day"},
)

quotes = Table(
    "quotes",
    metadata,
    Column("ts", Time, nullable=False),
    Column("market_key", Integer, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column("bid", BigInteger),
    Column("ask", BigInteger),
    Column("mid", BigInteger),
    Column("bid_size", BigInteger),
    Column("ask_size", BigInteger),
    Index("quotes_market_idx", "market_key", "outcome", "ts", unique=True),
    newest("quotes", "ts"),
    info={"timescale": "hypertable", "time": "ts", "chunk": "1 day"},
)

book_events = Table(
    "book_events",
    metadata,
    Column("ts", Time, nullable=False, comment="The exchange's instant"),
    Column("market_key", Integer, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column("event_id", BigInteger, nullable=False, comment="Digest of what changed"),
    Column("seq", BigInteger, nullable=False, comment="The order in which changes of one token are applied"),
    Column("side", SmallInteger, comment="A level change: 1 bids, -1 asks; null in a snapshot"),
    Column("price", Integer),
    Column("size", BigInteger, comment="The level's new total; 0 removes it"),
    Column("bid_prices", ARRAY(Integer), comment="A snapshot: both sides, best first"),
    Column("bid_sizes", ARRAY(BigInteger)),
    Column("ask_prices", ARRAY(Integer)),
    Column("ask_sizes", ARRAY(BigInteger)),
    Column("hash", LargeBinary, comment="The exchange's digest of the book after the change"),
    Index("book_events_market_idx", "market_key", "outcome", "ts", "event_id", unique=True),
    newest("book_events", "ts"),
    # Full books are few among the changes of levels; without this index a reader would scan past all of those.
    Index("book_events_snapshots_idx", "market_key", "outcome", text("ts desc"), postgresql_where=text("side is null")),
    info={"timescale": "hypertable", "time": "ts", "chunk": "1 day"},
)


def _candles(name: str) -> Table:
    return Table(
        name,
        metadata,
        Column("bucket", Time, nullable=False),
        Column("market_key", Integer, nullable=False),
        Column("outcome", SmallInteger, nullable=False),
        Column("open", BigInteger, nullable=False),
        Column("high", BigInteger, nullable=False),
        Column("low", BigInteger, nullable=False),
        Column("close", BigInteger, nullable=False),
        Column("volume", BigInteger, nullable=False),
        Column("value_usd", BigInteger, nullable=False),
        Column("trades", BigInteger, nullable=False),
        Column("first_seq", BigInteger, nullable=False),
        Column("last_seq", BigInteger, nullable=False),
        info={"timescale": "aggregate"},
    )


candles_1m = _candles("candles_1m")
candles_1h = _candles("candles_1h")

candles_due = Table(
    "candles_due",
    metadata,
    Column("due_id", BigInteger, Identity(always=True), primary_key=True),
    Column("since", Time, nullable=False),
    Column("until", Time, nullable=False, comment="The last trade touched; within the hour of `since`"),
    comment="Stretches of time whose candles are to be refreshed: trades were written there a minute late or more. A "
    "stretch may be there several times, so that who adds one waits for nobody. Empty on the Apache licence",
)

candle_refreshes = Table(
    "candle_refreshes",
    metadata,
    Column("refresh_id", BigInteger, Identity(always=True), primary_key=True),
    Column("candles", Text, nullable=False),
    Column("since", Time, nullable=False),
    Column("until", Time, nullable=False),
    Column("forced", Boolean, nullable=False, comment="All of the window, not only what TimescaleDB knows to be stale"),
    Column("requested_at", Time, nullable=False, server_default=text("now()")),
    Column("started_at", Time),
    Column("ended_at", Time),
    Column("error", Text, comment="Why it failed"),
    CheckConstraint("candles in ('candles_1m', 'candles_1h')", name="candles"),
    CheckConstraint("until - since between interval '1 minute' and interval '1 day'", name="window"),
    comment="Windows of candles that the pipeline asks to be refreshed: a job of the owner's does it, as only an "
    "aggregate's owner may. Whoever asked waits for the end and deletes the row. Empty on the Apache licence",
)

stream_blocks = Table(
    "stream_blocks",
    metadata,
    Column(
        "seq_from",
        BigInteger,
        nullable=False,
        comment="Number of the first message: one more than the last of the block before",
    ),
    Column("seq_to", BigInteger, nullable=False),
    Column("ts", Time, nullable=False, comment="When it was published"),
    Column("data", LargeBinary, nullable=False, comment="As packed by sql/stream_blocks.py"),
    CheckConstraint("seq_to >= seq_from and seq_to < seq_from + 2000", name="width"),
    Index("stream_blocks_seq_from_idx", "seq_from", unique=True),
    comment="Stream messages, in a block or more for each transaction; their numbers have no gaps, in commit order",
    info={"timescale": "hypertable", "time": "seq_from", "chunk": "1000000"},
)

stream_head = Table(
    "stream_head",
    metadata,
    Column("one", Boolean, primary_key=True, server_default=text("true")),
    Column("last_seq", BigInteger, nullable=False, server_default=text("0")),
    CheckConstraint("one", name="one"),
    comment="One row. A writer adds its count of events last in its transaction: its lock makes seq order commit order",
    info={"fillfactor": 10},
)
