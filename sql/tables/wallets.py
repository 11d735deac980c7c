"""Wallets: watches, activity, positions and profit."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import INT8MULTIRANGE

from sql.tables.base import NOW, Time, metadata

wallets_watched = Table(
    "wallets_watched",
    metadata,
    Column("account_id", BigInteger, ForeignKey("accounts.account_id"), primary_key=True),
    Column("wallet", LargeBinary, primary_key=True, index=True),
    Column(
        "blocks", INT8MULTIRANGE, nullable=False, comment="Captured of these: a stretch for each time it was watched"
    ),
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

position_changes = Table(
    "position_changes",
    metadata,
    Column("wallet", LargeBinary, nullable=False),
    Column("ts", Time, nullable=False),
    Column("block_number", BigInteger, nullable=False),
    Column("log_index", Integer, nullable=False),
    Column("entry", SmallInteger, nullable=False, comment="Of the ledger's log"),
    Column("token_key", Integer, nullable=False),
    Column("kind", Text, nullable=False, comment="split, merge, convert, redeem or transfer"),
    Column("shares", BigInteger, nullable=False, comment="Below 0: they went"),
    Column("usd", Numeric, comment="Micro-USD paid or got for them; null in a transfer: moved without a price"),
    Index(
        "position_changes_wallet_idx",
        "wallet",
        text("ts desc"),
        "block_number",
        "log_index",
        "entry",
        "token_key",
        unique=True,
    ),
    Index("position_changes_block_idx", "block_number", "ts"),
    info={"timescale": "hypertable", "time": "ts", "chunk": "7 days"},
    comment="What the ledger's entries did to each token that a wallet holds",
)

wallet_positions = Table(
    "wallet_positions",
    metadata,
    Column(
        "base",
        Boolean,
        primary_key=True,
        comment="False: up to positions_head.done. True: up to base_block, which others are made anew from",
    ),
    Column("wallet", LargeBinary, primary_key=True),
    Column("token_key", Integer, primary_key=True),
    Column("buys", Integer, nullable=False, comment="Fills"),
    Column("bought", BigInteger, nullable=False, comment="Shares"),
    Column("bought_usd", BigInteger, nullable=False),
    Column("sells", Integer, nullable=False),
    Column("sold", BigInteger, nullable=False),
    Column("sold_usd", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False, comment="Shares, by all that is known; below 0: some came from before"),
    Column("covered", BigInteger, nullable=False, comment="Shares of those whose cost is known"),
    Column("cost_usd", Numeric, nullable=False, comment="What these cost, by average; micro-USD to twelve decimals"),
    Column("realized_usd", Numeric, nullable=False, comment="Micro-USD to twelve decimals"),
    Column("left_out", Integer, nullable=False, comment="Rows left out of the cost, in whole or in part"),
    Column("first_trade", Time, comment="Null: never traded, only split, converted or transferred"),
    Column("last_trade", Time),
    info={"fillfactor": 70},
    comment="Each token that a wallet ever had; what came since is added when read",
)

positions_head = Table(
    "positions_head",
    metadata,
    Column("one", Boolean, primary_key=True, server_default=text("true")),
    Column(
        "claimed",
        BigInteger,
        nullable=False,
        server_default=text("-1"),
        comment="Whatever is written at or below this block from now on makes its positions due",
    ),
    Column(
        "done", BigInteger, nullable=False, server_default=text("-1"), comment="wallet_positions has all up to here"
    ),
    Column(
        "done_ts",
        Time,
        nullable=False,
        server_default=text("'1970-01-01 00:00:00+00'"),
        comment="No row after it is earlier",
    ),
    Column(
        "base_block",
        BigInteger,
        nullable=False,
        server_default=text("-1"),
        comment="Rows up to here may be gone: they are kept no longer",
    ),
    Column(
        "base_ts",
        Time,
        nullable=False,
        server_default=text("'1970-01-01 00:00:00+00'"),
        comment="No row after it is earlier",
    ),
    Column("market_key", Integer, nullable=False, server_default=text("0"), comment="The newest market met"),
    Column("from_block", BigInteger, comment="Where the rows that made positions began"),
    Column("from_ts", Time),
    Column("computed_at", Time, comment="When the last pass ended"),
    CheckConstraint("one", name="one"),
    comment="One row: how far positions have come",
    info={"fillfactor": 10},
)

positions_due = Table(
    "positions_due",
    metadata,
    Column("due_id", BigInteger, Identity(always=True), primary_key=True),
    Column("wallet", LargeBinary, nullable=False, index=True),
    Column("token_key", Integer, nullable=False),
    Column("ts", Time, nullable=False, comment="When it was that something changed"),
    comment="Positions to be made anew from their first fill: something of their past came, or went, later. A pair "
    "may be there several times, so that who adds one waits for nobody",
)

wallet_totals = Table(
    "wallet_totals",
    metadata,
    Column("wallet", LargeBinary, primary_key=True),
    Column("buys", BigInteger, nullable=False, comment="Fills"),
    Column("bought_usd", BigInteger, nullable=False),
    Column("sells", BigInteger, nullable=False),
    Column("sold_usd", BigInteger, nullable=False),
    Column("volume_usd", BigInteger, nullable=False),
    Column("first_trade", Time, nullable=False),
    Column("last_trade", Time, nullable=False),
    Index("wallet_totals_volume_idx", text("volume_usd desc")),
    info={"fillfactor": 70},
    comment="All fills of a wallet, up to positions_head.done",
)

wallet_hours = Table(
    "wallet_hours",
    metadata,
    Column("hour", Time, primary_key=True),
    Column("wallet", LargeBinary, primary_key=True),
    Column("volume_usd", BigInteger, nullable=False),
    Column("trades", Integer, nullable=False),
    comment="Of the last two days",
)

wallet_days = Table(
    "wallet_days",
    metadata,
    Column("day", Date, primary_key=True, comment="UTC"),
    Column("wallet", LargeBinary, primary_key=True),
    Column("volume_usd", BigInteger, nullable=False),
    Column("trades", Integer, nullable=False),
)

leaderboards = Table(
    "leaderboards",
    metadata,
    Column("span", Text, primary_key=True, comment="1d, 7d, 30d or all"),
    Column("by", Text, primary_key=True, comment="volume, pnl or window_pnl"),
    Column("rank", Integer, primary_key=True),
    Column("wallet", LargeBinary, nullable=False),
    Column("volume_usd", BigInteger, nullable=False),
    Column("trades", BigInteger, nullable=False),
    Column("markets", Integer, nullable=False),
    Column("pnl_usd", BigInteger, comment="Of positions traded in the window, since they were opened"),
    Column("window_start", Time, comment="Null: from the beginning"),
    Column("computed_at", Time, nullable=False),
    Column("window_pnl_usd", BigInteger, comment="Earned within the window; null: not known of all of it"),
)
