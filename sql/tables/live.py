"""Live state and statistics: one row per market and outcome, or per market."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    text,
)

from sql.tables.base import NOW, Time, metadata

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
    Column("anchored_ts", Time, comment="Of the full snapshot that the book was last built from"),
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
    Column("exchange", Text, nullable=False, server_default=text("'polymarket'")),
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
    Column("exchange", Text, nullable=False, server_default=text("'polymarket'")),
    Index("market_activity_value_1h_idx", "exchange", text("value_1h desc"), text("market_key desc")),
    Index("market_activity_trades_1h_idx", "exchange", text("trades_1h desc"), text("market_key desc")),
    Index("market_activity_value_24h_idx", "exchange", text("value_24h desc"), text("market_key desc")),
    Index("market_activity_trades_24h_idx", "exchange", text("trades_24h desc"), text("market_key desc")),
    Index("market_activity_value_7d_idx", "exchange", text("value_7d desc"), text("market_key desc")),
    Index("market_activity_trades_7d_idx", "exchange", text("trades_7d desc"), text("market_key desc")),
    Index("market_activity_spike_ratio_idx", "exchange", text("spike_ratio desc nulls last"), text("value_1h desc")),
    Index("market_activity_price_move_idx", "exchange", text("abs(price_move) desc nulls last")),
    comment="Markets with trades in seven days or prices in the last hour: what rankings are read from",
    info={"fillfactor": 70},
)

market_weeks = Table(
    "market_weeks",
    metadata,
    Column("market_key", Integer, primary_key=True, autoincrement=False),
    Column("value_usd", BigInteger, nullable=False),
    Column("trades", BigInteger, nullable=False),
    Column("until", Time, nullable=False, comment="The hours before this one; the same in every row"),
    Column("computed_at", Time, nullable=False),
    comment="The last seven days' older hours, added up every few minutes, so that it need not be done each minute",
)

taxonomy_counts = Table(
    "taxonomy_counts",
    metadata,
    Column("kind", Text, primary_key=True, comment="category, tag or series"),
    Column("name", Text, primary_key=True),
    Column("markets", BigInteger, nullable=False),
    Column("counted_at", Time, nullable=False),
    Index("taxonomy_counts_markets_idx", "kind", text("markets desc"), "name"),
    comment="What name_counts was before there were two exchanges: the release before still writes it",
)

name_counts = Table(
    "name_counts",
    metadata,
    Column("exchange", Text, primary_key=True),
    Column("kind", Text, primary_key=True, comment="category, tag or series"),
    Column("name", Text, primary_key=True),
    Column("markets", BigInteger, nullable=False),
    Column("counted_at", Time, nullable=False),
    Index("name_counts_markets_idx", "exchange", "kind", text("markets desc"), "name"),
    comment="How many markets of an exchange have a category, tag or series",
)
