"""Every table, declared once: for Alembic, for dynamic filters, and to be read.

Prices, sizes and USD amounts are bigint micro-units (10⁻⁶, as on the chain). Times are timestamptz in UTC. What
SQLAlchemy cannot say (hypertables, aggregates, triggers, functions) stands in `sql/timescale/`. A table whose `info`
has `timescale` is made there: `hypertable` turns it into one, `aggregate` makes it a continuous aggregate or, on the
Apache licence, a trigger-kept table.
"""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    }
)

Time = DateTime(timezone=True)
NOW = text("now()")
EMPTY_ARRAY = text("'{}'")
EMPTY_OBJECT = text("'{}'::jsonb")

# --- The catalogue --------------------------------------------------------------------------------------------------

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
    Column("market_id", Text, nullable=False, unique=True, comment="Condition id: 0x and 64 hex digits"),
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
    Index("markets_category_end_time_idx", "category", "status", "end_time"),
    Index("markets_category_created_at_idx", "category", "status", text("created_at desc nulls last")),
    Index("markets_created_at_idx", text("created_at desc")),
    Index("markets_tags_idx", "tags", postgresql_using="gin"),
    # By trigrams (pg_trgm): finds any part of a title of three letters or more.
    Index(
        "markets_title_idx",
        "question",
        "slug",
        "event_title",
        postgresql_using="gin",
        postgresql_ops=dict.fromkeys(("question", "slug", "event_title"), "gin_trgm_ops"),
    ),
)

tokens = Table(
    "tokens",
    metadata,
    Column("token_id", Text, primary_key=True, comment="uint256 in decimal, up to 78 digits"),
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
    Index("market_rankings_market_idx", "generation", "market_key", unique=True),
)

# --- Time series ----------------------------------------------------------------------------------------------------

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

stream_events = Table(
    "stream_events",
    metadata,
    Column("seq", BigInteger, nullable=False, comment="Gap-free, in commit order"),
    Column("ts", Time, nullable=False, server_default=NOW),
    Column("type", Text, nullable=False),
    Column("market_id", Text),
    Column("wallet", LargeBinary),
    Column("message", Text, nullable=False, comment="The JSON text as subscribers get it, seq included"),
    Index("stream_events_seq_idx", "seq", unique=True),
    info={"timescale": "hypertable", "time": "seq", "chunk": "1000000"},
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

# --- Live state: one row a market and outcome -----------------------------------------------------------------------

live_prices = Table(
    "live_prices",
    metadata,
    Column("market_key", Integer, primary_key=True),
    Column("outcome", SmallInteger, primary_key=True),
    Column("bid", BigInteger),
    Column("ask", BigInteger),
    Column("mid", BigInteger),
    Column("bid_size", BigInteger),
    Column("ask_size", BigInteger),
    Column("last", BigInteger),
    Column("last_ts", Time),
    Column("ts", Time, nullable=False, comment="When the exchange last said so"),
    Column("updated_at", Time, nullable=False, server_default=NOW),
    info={"fillfactor": 50},
)

live_books = Table(
    "live_books",
    metadata,
    Column("market_key", Integer, primary_key=True),
    Column("outcome", SmallInteger, primary_key=True),
    Column("bid_prices", ARRAY(Integer), nullable=False, comment="Best first"),
    Column("bid_sizes", ARRAY(BigInteger), nullable=False),
    Column("ask_prices", ARRAY(Integer), nullable=False),
    Column("ask_sizes", ARRAY(BigInteger), nullable=False),
    Column("tick_size", BigInteger),
    Column("hash", LargeBinary),
    Column("seq", BigInteger, nullable=False),
    Column("ts", Time, nullable=False),
    Column(
        "verified", Boolean, nullable=False, comment="Agrees with the exchange's own best prices; false: not served"
    ),
    Column("updated_at", Time, nullable=False, server_default=NOW),
    info={"fillfactor": 50},
)

market_stats_24h = Table(
    "market_stats_24h",
    metadata,
    Column("market_key", Integer, primary_key=True),
    Column("outcome", SmallInteger, primary_key=True),
    Column("open", BigInteger),
    Column("high", BigInteger),
    Column("low", BigInteger),
    Column("close", BigInteger),
    Column("volume", BigInteger, nullable=False),
    Column("value_usd", BigInteger, nullable=False),
    Column("trades", BigInteger, nullable=False),
    Column("window_start", Time, nullable=False),
    Column("window_end", Time, nullable=False),
    Column("computed_at", Time, nullable=False),
    Index("market_stats_24h_value_idx", text("value_usd desc")),
)

market_activity = Table(
    "market_activity",
    metadata,
    Column("market_key", Integer, primary_key=True),
    Column("value_1h", BigInteger, nullable=False, comment="USD traded in the last hour, over all outcomes"),
    Column("trades_1h", BigInteger, nullable=False),
    Column("value_24h", BigInteger, nullable=False),
    Column("trades_24h", BigInteger, nullable=False),
    Column("value_7d", BigInteger, nullable=False),
    Column("trades_7d", BigInteger, nullable=False),
    Column("spike_ratio", Double, comment="The last hour's USD over the 24 hours' hourly mean"),
    Column("price_now", BigInteger, comment="Of the first outcome"),
    Column("price_baseline", BigInteger, comment="The earliest sample of the last 65 minutes"),
    Column("price_move", BigInteger, comment="From the baseline to now"),
    Column("computed_at", Time, nullable=False, comment="When a figure last changed"),
    Index("market_activity_value_1h_idx", text("value_1h desc"), text("market_key desc")),
    Index("market_activity_trades_1h_idx", text("trades_1h desc"), text("market_key desc")),
    Index("market_activity_value_24h_idx", text("value_24h desc"), text("market_key desc")),
    Index("market_activity_trades_24h_idx", text("trades_24h desc"), text("market_key desc")),
    Index("market_activity_value_7d_idx", text("value_7d desc"), text("market_key desc")),
    Index("market_activity_trades_7d_idx", text("trades_7d desc"), text("market_key desc")),
    Index("market_activity_spike_ratio_idx", text("spike_ratio desc nulls last"), text("value_1h desc")),
    Index("market_activity_price_move_idx", text("abs(price_move) desc nulls last")),
    comment="Markets with trades in seven days or prices in the last hour: what rankings are read from",
    info={"fillfactor": 70},
)

taxonomy_counts = Table(
    "taxonomy_counts",
    metadata,
    Column("kind", Text, primary_key=True, comment="category, tag or series"),
    Column("name", Text, primary_key=True),
    Column("markets", BigInteger, nullable=False),
    Column("counted_at", Time, nullable=False),
    Index("taxonomy_counts_markets_idx", "kind", text("markets desc"), "name"),
)

# --- The feed and the pipeline's own state --------------------------------------------------------------------------

feed_leases = Table(
    "feed_leases",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("feed", Text, nullable=False, index=True),
    Column("role", Text, nullable=False, comment="standby, leader or gone"),
    Column(
        "ready", Boolean, nullable=False, server_default=text("false"), comment="Holds every book, could lead at once"
    ),
    Column("started_at", Time, nullable=False, server_default=NOW),
    Column(
        "beat_at",
        Time,
        nullable=False,
        server_default=NOW,
        comment="Touched each second: the only sign of life that counts",
    ),
    Column("window_ends_at", Time, nullable=False),
    Column("pid", Integer),
    Column("host", Text),
    Column("detail", JSONB, nullable=False, server_default=EMPTY_OBJECT),
)

feed_stats = Table(
    "feed_stats",
    metadata,
    Column("ts", Time, nullable=False),
    Column("feed", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("messages", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column(
        "lag_counts",
        ARRAY(Integer),
        nullable=False,
        comment="Histogram of exchange instant → commit; edges in orchestration/live/lag.py",
    ),
    Column("lag_p50_ms", Integer),
    Column("lag_p99_ms", Integer),
    Column("lag_max_ms", Integer),
    Column("reconnects", Integer, nullable=False, server_default=text("0")),
    Column(
        "reanchored",
        Integer,
        nullable=False,
        server_default=text("0"),
        comment="Books that disagreed and were fetched again",
    ),
    Index("feed_stats_ts_idx", "feed", text("ts desc")),
    info={"timescale": "hypertable", "time": "ts", "chunk": "7 days"},
)

coverage_gaps = Table(
    "coverage_gaps",
    metadata,
    Column("gap_id", BigInteger, Identity(always=True), primary_key=True),
    Column("kind", Text, nullable=False, comment="trades or books"),
    Column("market_key", Integer, comment="Null: every market of the feed"),
    Column("from_ts", Time, nullable=False),
    Column("to_ts", Time, comment="Null: still open"),
    Column("cause", Text, nullable=False),
    Column("run_id", Text),
    Column("filled_at", Time),
    Column("filled_by", Text),
    Column("detail", JSONB, nullable=False, server_default=EMPTY_OBJECT),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Index("coverage_gaps_from_ts_idx", text("from_ts desc")),
)

quarantine = Table(
    "quarantine",
    metadata,
    Column("quarantine_id", BigInteger, Identity(always=True), primary_key=True),
    Column("ts", Time, nullable=False, server_default=NOW),
    Column("source", Text, nullable=False, comment="gamma, clob, market_socket, data_api or chain"),
    Column("reason", Text, nullable=False),
    Column("payload", Text, nullable=False, comment="As it came, cut at 64 KiB"),
    Index("quarantine_ts_idx", text("ts desc")),
)

stage_clocks = Table(
    "stage_clocks",
    metadata,
    Column("stage", Text, primary_key=True),
    Column("last_data_at", Time, comment="The newest data that this stage has brought in"),
    Column("beat_at", Time, comment="When the stage last looked, even if there was nothing"),
    Column("warn_after_s", Integer, nullable=False),
    Column("fail_after_s", Integer, nullable=False),
    Column("detail", JSONB, nullable=False, server_default=EMPTY_OBJECT),
    comment="Each stage touches its own clock; lateness is computed when read, so a stall turns red by itself",
)

settings = Table(
    "settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", JSONB, nullable=False),
    Column("updated_at", Time, nullable=False, server_default=NOW),
    comment="What an administrator changes while running, and what the service keeps for itself: secrets, walk cursors",
)

# --- Accounts and keys ----------------------------------------------------------------------------------------------

tiers = Table(
    "tiers",
    metadata,
    Column("tier", Text, primary_key=True),
    Column("credits_month", BigInteger),
    Column("credits_burst", Integer),
    Column("max_keys", Integer),
    Column("max_webhooks", Integer),
    Column("max_connections", Integer),
    comment="Null: custom, set per key",
)

accounts = Table(
    "accounts",
    metadata,
    Column("account_id", BigInteger, Identity(always=True), primary_key=True),
    Column("email", Text, nullable=False, unique=True, comment="Normalised"),
    Column("app_name", Text, nullable=False),
    Column("use_case", Text),
    Column("created_at", Time, nullable=False, server_default=NOW),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", Integer, Identity(always=True), primary_key=True),
    Column("account_id", BigInteger, ForeignKey("accounts.account_id"), nullable=False, index=True),
    Column(
        "key_hash",
        LargeBinary,
        nullable=False,
        unique=True,
        comment="SHA-256; the key itself is shown once and never stored",
    ),
    Column("prefix", Text, nullable=False, comment="For display"),
    Column("tier", Text, ForeignKey("tiers.tier"), nullable=False),
    Column("credits_month", BigInteger, comment="Overrides the tier's"),
    Column("credits_burst", Integer, comment="Overrides the tier's"),
    Column("max_connections", Integer, comment="Overrides the tier's"),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("revoked_at", Time),
)

credit_usage = Table(
    "credit_usage",
    metadata,
    Column("key_id", Integer, ForeignKey("api_keys.key_id"), primary_key=True),
    Column("month", Time, primary_key=True, comment="Its first instant, UTC"),
    Column("used", BigInteger, nullable=False, server_default=text("0"), comment="Those leased to a host included"),
    info={"fillfactor": 50},
)

credit_leases = Table(
    "credit_leases",
    metadata,
    Column("lease_id", BigInteger, primary_key=True, comment="Drawn at random by the host that spends it"),
    Column("key_id", Integer, ForeignKey("api_keys.key_id"), nullable=False, index=True),
    Column("month", Time, nullable=False, comment="Its first instant, UTC"),
    Column("granted", BigInteger, nullable=False, comment="Credits taken so far, spent or not; credit_usage has them"),
    Column("step", BigInteger, nullable=False, comment="Raised by each grant: an answer that got lost is told again"),
    comment="What hosts hold of the keys' credits; a row whose host has crashed is past use, and goes with its month",
)

registrations = Table(
    "registrations",
    metadata,
    Column("address", Text, primary_key=True, comment="Where keys were asked for from: an IPv4 address, an IPv6 /64"),
    Column("day", Time, nullable=False, index=True, comment="Its first instant, UTC"),
    Column("asked", Integer, nullable=False),
    comment="Kept for the day, so that one address cannot make any number of keys",
)
