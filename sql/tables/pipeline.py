"""State of the feed and the pipeline: leases, gaps, refusals, clocks, settings."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from sql.tables.base import EMPTY_OBJECT, NOW, Time, metadata

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

feed_hosts = Table(
    "feed_hosts",
    metadata,
    Column("host", Text, primary_key=True),
    Column("instance", Text, nullable=False, comment="Of the command: two of one name show"),
    Column("beat_at", Time, nullable=False, server_default=NOW, comment="Touched every few seconds"),
    comment="Hosts that run feeds without Dagster, `presage up --role feed`",
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
    Column("market_key", Integer, comment="Null: every market of the feed, or of the shard"),
    Column("from_ts", Time, nullable=False),
    Column("to_ts", Time, comment="Null: still open"),
    Column("cause", Text, nullable=False),
    Column("run_id", Text),
    Column("filled_at", Time),
    Column("filled_by", Text),
    Column("detail", JSONB, nullable=False, server_default=EMPTY_OBJECT),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("shard", Integer, comment="With `shards`: only markets of this shard, of so many; null: of every one"),
    Column("shards", Integer),
    Column(
        "exchange",
        Text,
        nullable=False,
        server_default=text("'polymarket'"),
        comment="The exchange of its market, or of all markets that it concerns",
    ),
    Index("coverage_gaps_from_ts_idx", text("from_ts desc"), text("gap_id desc")),
    Index("coverage_gaps_market_idx", "market_key", text("from_ts desc")),
    # Missing stretches, and how much has been filled: each read from its index alone.
    Index(
        "coverage_gaps_missing_idx", "exchange", "kind", "from_ts", "to_ts", postgresql_where=text("filled_at is null")
    ),
    Index("coverage_gaps_filled_idx", "exchange", "kind", postgresql_where=text("filled_at is not null")),
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
