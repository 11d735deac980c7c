"""Wallets: who is watched, what they did, what they hold and have earned."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    SmallInteger,
    Table,
    Text,
    text,
)

from sql.tables.base import NOW, Time, metadata

wallets_watched = Table(
    "wallets_watched",
    metadata,
    Column("account_id", BigInteger, ForeignKey("accounts.account_id"), primary_key=True),
    Column("wallet", LargeBinary, primary_key=True, index=True),
    Column("since_block", BigInteger, nullable=False, comment="Captured from here on"),
    Column("watched_at", Time, nullable=False, server_default=NOW),
    Column("unwatched_at", Time, comment="What was captured until then is kept for its 90 days"),
)

wallets_followed = Table(
    "wallets_followed",
    metadata,
    Column("account_id", BigInteger, ForeignKey("accounts.account_id"), primary_key=True),
    Column("wallet", LargeBinary, primary_key=True, index=True),
    Column("until_at", Time, nullable=False, comment="Moved on for as long as the subscription lasts"),
    comment="Wallets subscribed to on the stream: told of there until then, as watched ones are, but not stored",
)

wallet_activity = Table(
    "wallet_activity",
    metadata,
    Column("wallet", LargeBinary, nullable=False),
    Column("ts", Time, nullable=False),
    Column("block_number", BigInteger, nullable=False),
    Column("log_index", Integer, nullable=False),
    Column("is_taker", Boolean, nullable=False),
    Column("match_index", Integer),
    Column("tx_hash", LargeBinary, nullable=False),
    Column("contract_key", SmallInteger, nullable=False),
    Column("token_key", Integer, nullable=False),
    Column("counterparty", LargeBinary, nullable=False, comment="The other side"),
    Column("side", SmallInteger, nullable=False, comment="The wallet's: 1 BUY, -1 SELL"),
    Column("price", BigInteger, comment="Null: no price could be matched"),
    Column("size", BigInteger, nullable=False),
    Column("value_usd", BigInteger, nullable=False),
    Column("fee_usd", BigInteger, nullable=False),
    Index(
        "wallet_activity_wallet_idx", "wallet", text("ts desc"), "block_number", "log_index", "is_taker", unique=True
    ),
    Index("wallet_activity_block_idx", "block_number", "ts"),
    info={"timescale": "hypertable", "time": "ts", "chunk": "7 days"},
    comment="What watched wallets did while they were watched; kept 90 days",
)

wallet_positions = Table(
    "wallet_positions",
    metadata,
    Column("wallet", LargeBinary, primary_key=True),
    Column("token_key", Integer, primary_key=True),
    Column("bought", BigInteger, nullable=False, comment="Shares"),
    Column("bought_usd", BigInteger, nullable=False),
    Column("sold", BigInteger, nullable=False),
    Column("sold_usd", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False, comment="Shares, by all that is known; below 0: some came from before"),
    Column("cost_usd", Numeric, nullable=False, comment="Of what is held, by average cost; USD, not rounded"),
    Column("realized_usd", Numeric, nullable=False, comment="USD, not rounded"),
    Column("without_price", Integer, nullable=False, comment="Rows left out of the cost, as they have no price"),
    Column("trades", Integer, nullable=False),
    Column("first_ts", Time, nullable=False),
    Column("last_ts", Time, nullable=False),
    Column("through_block", BigInteger, nullable=False, comment="All up to here is in"),
    Column("through_log", Integer, nullable=False),
    Index("wallet_positions_last_idx", "wallet", text("last_ts desc")),
    info={"fillfactor": 70},
)

positions_due = Table(
    "positions_due",
    metadata,
    Column("wallet", LargeBinary, primary_key=True),
    Column("token_key", Integer, primary_key=True),
    comment="Positions to be made anew from their first fill: something of their past came, or went, afterwards",
)

wallet_days = Table(
    "wallet_days",
    metadata,
    Column("day", Date, primary_key=True),
    Column("wallet", LargeBinary, primary_key=True),
    Column("volume_usd", BigInteger, nullable=False),
    Column("trades", Integer, nullable=False),
)

leaderboards = Table(
    "leaderboards",
    metadata,
    Column("span", Text, primary_key=True, comment="1d, 7d, 30d or all"),
    Column("by", Text, primary_key=True, comment="volume or pnl"),
    Column("rank", Integer, primary_key=True),
    Column("wallet", LargeBinary, nullable=False),
    Column("volume_usd", BigInteger, nullable=False),
    Column("trades", BigInteger, nullable=False),
    Column("markets", Integer, nullable=False),
    Column("pnl_usd", BigInteger),
    Column("computed_at", Time, nullable=False),
)
