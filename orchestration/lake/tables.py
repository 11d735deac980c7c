"""The lake's tables: each one's query, columns and fingerprint."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import (
    BooleanType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from sql.queries import lake as queries

if TYPE_CHECKING:
    from collections.abc import Callable

INSTANT, TEXT, MICRO, WHOLE, SMALL, FLAG = "instant", "text", "micro", "whole", "small", "flag"
DIGITS, SCALE = 18, 6  # of amounts: micro-units, as the database has them
FIRST_PARTITION_ID = 1000  # as the specification has it
ICEBERG: dict[str, IcebergType] = {
    INSTANT: TimestamptzType(),
    TEXT: StringType(),
    MICRO: DecimalType(DIGITS, SCALE),
    WHOLE: LongType(),
    SMALL: IntegerType(),
    FLAG: BooleanType(),
}
ARROW = {
    INSTANT: pa.timestamp("us", tz="UTC"),
    TEXT: pa.string(),
    MICRO: pa.decimal128(DIGITS, SCALE),
    WHOLE: pa.int64(),
    SMALL: pa.int32(),
    FLAG: pa.bool_(),
}
AS_READ = {**ARROW, MICRO: pa.int64()}  # of the database's text: micro-units are whole numbers there


SETTLED = timedelta(hours=1)  # after a day's end, most of what arrives late is there
PACKED = timedelta(hours=25)  # and by then, its books are packed


@dataclass(frozen=True)
class LakeTable:
    """A table of the lake. `daily`: its rows belong to the day of `ts`; otherwise it is written whole, each day."""

    name: str
    description: str
    query: Callable[..., Any]
    fingerprint: Callable[..., Any]
    columns: dict[str, str]
    daily: bool = True
    hypertable: str = "trades"
    """Whose oldest chunk is the first day to write."""
    parts: int = 1
    """Files a day, of equal spans of time."""
    row_group: int | None = None
    """Rows of a group in the files, if not `arrow_copy.ROW_GROUP`: who asks for one market reads whole groups."""
    packed: bool = False
    """The query also reads `unpacked_events`."""
    settle_time: timedelta = SETTLED
    """How long after a day's end it is written."""

    @property
    def text(self) -> str:
        """Return the query's text, with named placeholders `from_ts` and `to_ts`."""
        return str(self.query.sql)  # type: ignore[attr-defined]

    @property
    def read_schema(self) -> pa.Schema:
        """Return the columns as the database writes them."""
        return pa.schema([(name, AS_READ[kind]) for name, kind in self.columns.items()])

    @property
    def arrow_schema(self) -> pa.Schema:
        """Return the columns of the files, with Iceberg's field ids."""
        return pa.schema(
            [
                pa.field(name, ARROW[kind], metadata={"PARQUET:field_id": str(number)})
                for number, (name, kind) in enumerate(self.columns.items(), 1)
            ]
        )

    @property
    def schema(self) -> Schema:
        """Return Iceberg's schema."""
        return Schema(
            *(
                NestedField(number, name, ICEBERG[kind], required=False)
                for number, (name, kind) in enumerate(self.columns.items(), 1)
            )
        )

    @property
    def partitions(self) -> PartitionSpec:
        """Return how files are partitioned: by day, or not at all."""
        if not self.daily:
            return PartitionSpec()
        source = list(self.columns).index("ts") + 1
        return PartitionSpec(PartitionField(source, FIRST_PARTITION_ID, DayTransform(), "day"))


OF_OUTCOME = {"market_id": TEXT, "outcome": SMALL}
BOOK_EVENT = {
    "ts": INSTANT,
    **OF_OUTCOME,
    "seq": WHOLE,
    **dict.fromkeys(("kind", "side"), TEXT),
    **dict.fromkeys(("price", "size"), MICRO),
    **dict.fromkeys(("bids", "asks", "hash"), TEXT),
}

TABLES = (
    LakeTable(
        "markets",
        "Every market as it stood when the table was last written.",
        queries.markets,
        queries.markets_fingerprint,
        {
            "market_id": TEXT,
            **dict.fromkeys(("exchange", "slug", "question", "status", "category"), TEXT),
            **dict.fromkeys(("event_id", "event_title", "series", "tags", "outcomes", "token_ids"), TEXT),
            **dict.fromkeys(("start_time", "end_time", "created_at", "closed_at", "resolved_at"), INSTANT),
            "winning_outcome": SMALL,
            "neg_risk": FLAG,
            "source": TEXT,
        },
        daily=False,
    ),
    LakeTable(
        "trades",
        "The exchange's tape, one row a trade.",
        queries.trades,
        queries.trades_fingerprint,
        {
            "ts": INSTANT,
            **OF_OUTCOME,
            "trade_id": WHOLE,
            "seq": WHOLE,
            "side": TEXT,
            **dict.fromkeys(("price", "size", "value_usd"), MICRO),
            "tx_hash": TEXT,
        },
    ),
    LakeTable(
        "candles_1m",
        "Prices by the minute, one row an outcome and minute with trades.",
        queries.candles,
        queries.candles_fingerprint,
        {
            "ts": INSTANT,
            **OF_OUTCOME,
            **dict.fromkeys(("open", "high", "low", "close", "volume", "value_usd"), MICRO),
            "trades": WHOLE,
        },
    ),
    LakeTable(
        "settlements",
        "Fills as the chain settled them, one row an order of a match; sum only those that are `counted`.",
        queries.settlements,
        queries.settlements_fingerprint,
        {
            "ts": INSTANT,
            "block_number": WHOLE,
            "log_index": WHOLE,
            "tx_hash": TEXT,
            "token_id": TEXT,
            **OF_OUTCOME,
            **dict.fromkeys(("maker", "taker", "side"), TEXT),
            **dict.fromkeys(("price", "size", "value_usd", "fee_usd"), MICRO),
            "is_taker_order": FLAG,
            "counted": FLAG,
        },
        hypertable="settlements",
    ),
    LakeTable(
        "book_events",
        "What happened to the order books: whole books and changed levels, with the level's new total; 0 removes it.",
        queries.book_events,
        queries.book_events_fingerprint,
        BOOK_EVENT,
        hypertable="book_events",
        parts=24,  # a day of the whole exchange is hundreds of millions of rows
        row_group=32_768,
        packed=True,
    ),
    LakeTable(
        "quotes",
        "The best prices and their sizes, whenever one changed.",
        queries.quotes,
        queries.quotes_fingerprint,
        {"ts": INSTANT, **OF_OUTCOME, **dict.fromkeys(("bid", "ask", "mid", "bid_size", "ask_size"), MICRO)},
        hypertable="quotes",
        parts=4,
    ),
    LakeTable(
        "book_anchors",
        "Whole books that the database stores itself, from which the API rebuilds past ones (the Community licence).",
        queries.book_anchors,
        queries.book_anchors_fingerprint,
        {"ts": INSTANT, **OF_OUTCOME, "seq": WHOLE, "bids": TEXT, "asks": TEXT},
        hypertable="book_anchors",
        row_group=2048,
        settle_time=PACKED,
    ),
    LakeTable(
        "book_packs",
        "The same events in the packs that the API rebuilds past books from (the Apache licence).",
        queries.book_packs,
        queries.book_packs_fingerprint,
        {
            "ts": INSTANT,
            **OF_OUTCOME,
            "until_ts": INSTANT,
            "whole_from": INSTANT,
            "events": WHOLE,
            "data": TEXT,
        },
        hypertable="book_packs",
        row_group=512,  # of some five kilobytes each
        settle_time=PACKED,
    ),
    LakeTable(
        "book_rows",
        "The events that are in no pack (the Apache licence).",
        queries.book_rows,
        queries.book_rows_fingerprint,
        BOOK_EVENT,
        hypertable="book_events",
        row_group=8192,
        settle_time=PACKED,
    ),
)
BY_NAME = {table.name: table for table in TABLES}
