"""The catalogue: events, markets, their tokens and states."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import BIT, JSONB

from sql.tables.base import EMPTY_ARRAY, NOW, Time, metadata

events = Table(
    "events",
    metadata,
    Column("event_id", Text, primary_key=True, comment="The exchange's id of the event"),
    Column("slug", Text),
    Column("title", Text),
    Column("category", Text),
    Column("series", Text),
    Column("tags", ARRAY(Text), nullable=False, server_default=EMPTY_ARRAY),
    Column("start_time", Time),
    Column("end_time", Time),
    Column("closed", Boolean, nullable=False, server_default=text("false")),
    Column("neg_risk", Boolean, nullable=False, server_default=text("false")),
    Column("image", Text),
    Column("updated_at", Time, nullable=False, server_default=NOW),
)

markets = Table(
    "markets",
    metadata,
    Column("market_key", Integer, Identity(always=True), primary_key=True, comment="Our own short key"),
    Column(
        "market_id",
        Text,
        nullable=False,
        unique=True,
        comment="Condition id: 0x and 64 hex digits; of Kalshi the ticker",
    ),
    Column("gamma_id", Text, unique=True, comment="The exchange's numeric id"),
    Column("slug", Text, index=True),
    Column("question", Text, nullable=False),
    Column("description", Text),
    Column("status", Text, nullable=False),
    Column("exchange", Text, nullable=False, server_default=text("'polymarket'")),
    Column(
        "version",
        Text,
        nullable=False,
        server_default=text("'v1'"),
        comment="Protocol: v1 (CTF) or v2 (PositionManager)",
    ),
    Column("event_id", Text, index=True),
    Column("event_title", Text),
    Column("category", Text),
    Column("series", Text, index=True),
    Column("tags", ARRAY(Text), nullable=False, server_default=EMPTY_ARRAY),
    Column("outcomes", ARRAY(Text), nullable=False),
    Column("token_ids", ARRAY(Text), nullable=False),
    Column(
        "outcome_prices", ARRAY(BigInteger), nullable=False, server_default=EMPTY_ARRAY, comment="Micro; the exchange's"
    ),
    Column("start_time", Time),
    Column("end_time", Time),
    Column("created_at", Time, comment="When the exchange listed it"),
    Column("closed_at", Time),
    Column("resolved_at", Time),
    Column("winning_outcome", SmallInteger, comment="0-based; null when unknown, or when the payout is shared"),
    Column("volume_usd", BigInteger),
    Column("volume_24h_usd", BigInteger, comment="As the exchange counts it"),
    Column("liquidity_usd", BigInteger),
    Column("neg_risk", Boolean, nullable=False, server_default=text("false")),
    Column("order_book", Boolean, nullable=False, server_default=text("true"), comment="Traded on the order book"),
    Column("tick_size", BigInteger),
    Column("image", Text),
    Column("url", Text),
    Column("source", Text, nullable=False, server_default=text("'exchange'"), comment="exchange, tape or simulated"),
    Column("raw", JSONB, comment="The exchange's own object, as last seen"),
    Column("first_seen_at", Time, nullable=False, server_default=NOW),
    Column("updated_at", Time, nullable=False, server_default=NOW, comment="When a stored field last changed"),
    CheckConstraint("status in ('ACTIVE', 'CLOSED', 'RESOLVED')", name="status"),
    # Not partial by state: a prepared query has the state as a parameter.
    Index("markets_end_time_idx", "status", "end_time"),
    Index(
        "markets_category_end_idx",
        *("category", "exchange", "status", text("coalesce(end_time, 'infinity'::timestamptz)"), "market_key"),
    ),
    Index(
        "markets_category_created_idx",
        *("category", "exchange", "status"),
        *(text("coalesce(created_at, '-infinity'::timestamptz) desc"), text("market_key desc")),
    ),
    Index("markets_created_at_idx", text("created_at desc")),
    Index("markets_tags_idx", "tags", postgresql_using="gin"),
    # By trigrams (pg_trgm): finds any part of a title of three letters or more.
    Index(
        "markets_titles_idx",
        literal_column("market_titles(question, slug, event_title)").label("titles"),
        postgresql_using="gin",
        postgresql_ops={"titles": "gin_trgm_ops"},
    ),
)

tokens = Table(
    "tokens",
    metadata,
    Column(
        "token_id",
        Text,
        primary_key=True,
        comment="uint256 in decimal, up to 78 digits; of Kalshi TICKER:yes and TICKER:no",
    ),
    Column("market_key", Integer, ForeignKey("markets.market_key", ondelete="CASCADE"), nullable=False, index=True),
    Column("outcome", SmallInteger, nullable=False),
)

market_status_changes = Table(
    "market_status_changes",
    metadata,
    Column("change_id", BigInteger, Identity(always=True), primary_key=True),
    Column("market_key", Integer, ForeignKey("markets.market_key", ondelete="CASCADE"), nullable=False, index=True),
    Column("ts", Time, nullable=False, server_default=NOW),
    Column("from_status", Text),
    Column("to_status", Text, nullable=False),
    Column("cause", Text, nullable=False),
)

market_rankings = Table(
    "market_rankings",
    metadata,
    Column(
        "generation",
        BigInteger,
        primary_key=True,
        comment="A cursor walks one generation, so that ranks cannot move under it",
    ),
    Column("rank", Integer, primary_key=True),
    Column("market_key", Integer, nullable=False),
    Column("value_usd", BigInteger, comment="What it is ranked by: USD of 24 hours, over all outcomes"),
    Index("market_rankings_market_idx", "generation", "market_key", unique=True),
)

market_bitmaps = Table(
    "market_bitmaps",
    metadata,
    Column("kind", Text, primary_key=True, comment="status, exchange, category, series, tag, ranking or ranks"),
    Column(
        "name",
        Text,
        primary_key=True,
        comment="Of a ranking: its generation; of ranks: the generation and, after a slash, ranks divided by 32,768",
    ),
    Column("block", Integer, primary_key=True, comment="Of market keys: the key divided by 16,384"),
    Column("bits", BIT(16384), nullable=False, comment="1: the market has the name; the block's first key comes first"),
    comment="A bitmap index of the markets, for lists with any combination of filters",
)

open_markets = Table(
    "open_markets",
    metadata,
    Column("market_key", Integer, ForeignKey("markets.market_key", ondelete="CASCADE"), primary_key=True),
    Column("end_time", Time),
    Column("exchange", Text, nullable=False),
    Column("titles", Text, nullable=False, comment="As market_titles returns them"),
    Index("open_markets_end_time_idx", "end_time", "market_key", postgresql_include=["exchange"]),
    Index("open_markets_titles_idx", "titles", postgresql_using="gin", postgresql_ops={"titles": "gin_trgm_ops"}),
    comment="Active markets by their end and titles: few beside all, and rarely rewritten",
)

category_days = Table(
    "category_days",
    metadata,
    Column("category", Text, primary_key=True),
    Column("exchange", Text, primary_key=True),
    Column("sort", Text, primary_key=True, comment="created or resolution: which time of a market is in the day"),
    Column("status", Text, primary_key=True),
    Column("day", Time, primary_key=True, comment="UTC; infinite for markets without that time: they come last"),
    Column("markets", Integer, nullable=False),
    comment="How many markets of a category were listed or end on a day, for lists that skip many",
)
