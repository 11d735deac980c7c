"""The settlement chain: blocks, fills as they were settled, and other position changes."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from sql.tables.base import EMPTY_OBJECT, NOW, Time, metadata

chain_contracts = Table(
    "chain_contracts",
    metadata,
    Column("contract_key", SmallInteger, Identity(always=True), primary_key=True),
    Column("address", LargeBinary, nullable=False, unique=True),
    Column("name", Text, nullable=False, comment="As in upstream/chain/contracts.py"),
    comment="Contracts whose logs are stored, so that a row names one in two bytes",
)

chain_tokens = Table(
    "chain_tokens",
    metadata,
    Column("token_key", Integer, Identity(always=True), primary_key=True),
    Column("token_id", Text, nullable=False, unique=True, comment="uint256 in decimal, as in tokens"),
    comment="Every token that a log named, whether or not the catalogue knows it yet; markets by joining tokens",
)

chain_heads = Table(
    "chain_heads",
    metadata,
    Column("feed", Text, primary_key=True),
    Column("head", BigInteger, nullable=False, comment="The newest block that any endpoint told"),
    Column("finalized", BigInteger, nullable=False, comment="Rows above it are provisional"),
    Column("indexed", BigInteger, nullable=False, comment="Followed up to here without a hole"),
    Column(
        "trades",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="Counted fills of all that was ever indexed, those that retention has taken included",
    ),
    Column("updated_at", Time, nullable=False, server_default=NOW),
    Column("detail", JSONB, nullable=False, server_default=EMPTY_OBJECT),
)

chain_blocks = Table(
    "chain_blocks",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("hash", LargeBinary, nullable=False),
    Column("parent", LargeBinary, comment="Null: filled in from logs alone, far below the finalized head"),
    Column("ts", Time, nullable=False),
    Column("logs", Integer, nullable=False, comment="Of our contracts: what a later re-check is held against"),
    # Append-only by time: a range of timestamps is a range of numbers.
    Index("chain_blocks_ts_idx", "ts", postgresql_using="brin"),
    comment="Blocks indexed: all that were followed, and those with logs where ranges were filled in. A block that "
    "stands here has all of its rows, as both are written in one transaction",
)

chain_ranges = Table(
    "chain_ranges",
    metadata,
    Column("from_block", BigInteger, primary_key=True, autoincrement=False),
    Column("to_block", BigInteger, nullable=False, comment="Included"),
    Column("logs", BigInteger, nullable=False),
    Column("indexed_at", Time, nullable=False, server_default=NOW),
    comment="What has been indexed; neighbours are joined",
)

chain_checks = Table(
    "chain_checks",
    metadata,
    Column("from_block", BigInteger, primary_key=True, autoincrement=False),
    Column("to_block", BigInteger, nullable=False, comment="Included"),
    Column("checked_at", Time, nullable=False, server_default=NOW),
    comment="What has been counted again after it was final; neighbours are joined",
)

data_incidents = Table(
    "data_incidents",
    metadata,
    Column("incident_id", BigInteger, Identity(always=True), primary_key=True),
    Column(
        "kind",
        Text,
        nullable=False,
        comment="logs_missing, logs_withheld, deep_reorg, finalized_mismatch or resolution_disagrees",
    ),
    Column("subject", Text, nullable=False, comment="Block range or market id"),
    Column("first_at", Time, nullable=False, server_default=NOW),
    Column("last_at", Time, nullable=False, server_default=NOW),
    Column("times", Integer, nullable=False, server_default=text("1")),
    Column("mended_at", Time, comment="Null: still so"),
    Column("detail", JSONB, nullable=False, server_default=EMPTY_OBJECT),
    UniqueConstraint("kind", "subject"),
    Index("data_incidents_last_idx", text("last_at desc")),
    comment="Sources that contradicted each other or themselves, and what became of it",
)

settlements = Table(
    "settlements",
    metadata,
    Column("ts", Time, nullable=False, comment="The block's instant"),
    Column("block_number", BigInteger, nullable=False),
    Column("log_index", Integer, nullable=False),
    Column(
        "match_index", Integer, comment="Log index of the taker's own row of the same match; null when there is none"
    ),
    Column("tx_hash", LargeBinary, nullable=False),
    Column("contract_key", SmallInteger, nullable=False),
    Column("token_key", Integer, nullable=False),
    Column("maker", LargeBinary, nullable=False, comment="Owns the order that this row is about"),
    Column("taker", LargeBinary, nullable=False),
    Column("side", SmallInteger, nullable=False, comment="The maker's: 1 BUY, -1 SELL"),
    Column("price", BigInteger, comment="Null: no shares, or an impossible price"),
    Column("size", BigInteger, nullable=False),
    Column("value_usd", BigInteger, nullable=False),
    Column("fee_usd", BigInteger, nullable=False),
    Column("is_taker_order", Boolean, nullable=False),
    Column(
        "counted", Boolean, nullable=False, comment="In volume: the taker's row, or a maker's of a match without one"
    ),
    Index("settlements_block_idx", "block_number", "log_index", "ts", unique=True),
    Index("settlements_token_idx", "token_key", text("ts desc")),
    Index("settlements_ts_idx", text("ts desc")),
    info={"timescale": "hypertable", "time": "ts", "chunk": "1 day"},
)

wallet_fills = Table(
    "wallet_fills",
    metadata,
    Column("wallet", LargeBinary, nullable=False),
    Column("ts", Time, nullable=False),
    Column("block_number", BigInteger, nullable=False),
    Column("log_index", Integer, nullable=False),
    Column("is_taker", Boolean, nullable=False, comment="The wallet's role"),
    Column("token_key", Integer, nullable=False),
    Column("side", SmallInteger, nullable=False, comment="The wallet's: 1 BUY, -1 SELL"),
    Column("price", BigInteger),
    Column("size", BigInteger, nullable=False),
    Column("value_usd", BigInteger, nullable=False),
    Column("fee_usd", BigInteger, nullable=False),
    Index("wallet_fills_wallet_idx", "wallet", text("ts desc"), "block_number", "log_index", "is_taker", unique=True),
    Index("wallet_fills_block_idx", "block_number", "ts"),
    info={"timescale": "hypertable", "time": "ts", "chunk": "1 day"},
    comment="One row an order's owner and fill: a match is in two wallets' histories and counted once in volume",
)

ledger_entries = Table(
    "ledger_entries",
    metadata,
    Column("ts", Time, nullable=False),
    Column("block_number", BigInteger, nullable=False),
    Column("log_index", Integer, nullable=False),
    Column("entry", SmallInteger, nullable=False, comment="Within the log: a batch transfer is several"),
    Column("kind", Text, nullable=False, comment="split, merge, convert, redeem, transfer or resolution"),
    Column(
        "wallet",
        LargeBinary,
        comment="Whose position changed; null in a resolution, and where the chain does not show it",
    ),
    Column("counterparty", LargeBinary, comment="Of a transfer: the other side"),
    Column("condition_id", LargeBinary, comment="The market; of a conversion the exchange's neg-risk market id"),
    Column("token_key", Integer, comment="Of a transfer"),
    Column(
        "amount",
        BigInteger,
        nullable=False,
        comment="Shares, below zero of a transfer's sender; of a redemption the USD paid out",
    ),
    Column("tx_hash", LargeBinary, nullable=False),
    Column("contract_key", SmallInteger, nullable=False),
    Column(
        "detail",
        JSONB,
        nullable=False,
        server_default=EMPTY_OBJECT,
        comment="tokens: [[token id, change], …]; index sets, numerators, the adapter it went through",
    ),
    Index("ledger_entries_block_idx", "block_number", "log_index", "entry", "ts", unique=True),
    Index("ledger_entries_wallet_idx", "wallet", text("ts desc")),
    Index("ledger_entries_condition_idx", "condition_id", text("ts desc")),
    info={"timescale": "hypertable", "time": "ts", "chunk": "1 day"},
)
