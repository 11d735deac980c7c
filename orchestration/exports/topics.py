"""Export topics: each topic's query, and its columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from config.exchanges import EXCHANGES, POLYMARKET, Exchange
from sql.queries import exports as queries

if TYPE_CHECKING:
    from collections.abc import Callable

# Arrow's type names; timestamps have microseconds, in UTC.
INSTANT, TEXT, NUMBER, WHOLE, SMALL, FLAG = "timestamp[us]", "string", "float64", "int64", "int16", "bool"
OF_MARKET = {"market_id": TEXT, "slug": TEXT}
OF_OUTCOME = {**OF_MARKET, "outcome": SMALL, "outcome_name": TEXT}


@dataclass(frozen=True)
class Topic:
    """Data of an exchange that is exported by day, in a number of parts of equal length."""

    name: str
    """Polymarket's have no suffix: `trades`, `trades_kalshi`."""
    description: str
    query: Callable[..., Any]
    columns: dict[str, str]
    parts: int = 1
    asset: str = ""
    """The asset that is exported, as Polymarket's is named, if not by the topic's name."""
    of_chain: bool = False
    """Whether only exchanges with a chain have it."""
    of_catalogue: bool = False
    """Whether it is there without a live feed."""
    is_packed: bool = False
    """Whether the rows are those of packs, too."""
    exchange: Exchange = POLYMARKET

    def of(self, exchange: Exchange) -> Self:
        """Return the same topic of an exchange."""
        return replace(self, name=exchange.own(self.name), asset=self.asset or self.name, exchange=exchange)

    @property
    def schema(self) -> Any:
        """Return the Arrow schema of the columns."""
        import pyarrow as pa  # noqa: PLC0415 (every run of every job imports this module)

        instant = pa.timestamp("us", tz="UTC")
        return pa.schema(
            [(name, instant if kind == INSTANT else pa.type_for_alias(kind)) for name, kind in self.columns.items()]
        )

    @property
    def text(self) -> str:
        """Return the query's text, with named placeholders `from_ts`, `to_ts` and `exchange`."""
        return str(self.query.sql)  # type: ignore[attr-defined]


_TOPICS = (
    Topic(
        "markets",
        "Every market listed by the end of the day, as it stood when the file was written.",
        queries.markets,
        {
            **OF_MARKET,
            **dict.fromkeys(("question", "status", "category", "event_id", "event_title", "series", "tags"), TEXT),
            **dict.fromkeys(("outcomes", "token_ids", "outcome_prices"), TEXT),
            **dict.fromkeys(("start_time", "end_time", "created_at", "closed_at", "resolved_at"), INSTANT),
            "winning_outcome": SMALL,
            **dict.fromkeys(("volume_usd", "liquidity_usd", "tick_size"), NUMBER),
            "neg_risk": FLAG,
            "source": TEXT,
            **dict.fromkeys(("first_seen_at", "updated_at"), INSTANT),
        },
        of_catalogue=True,
    ),
    Topic(
        "trades",
        "The exchange's tape, one row a trade.",
        queries.trades,
        {
            "ts": INSTANT,
            **OF_OUTCOME,
            "token_id": TEXT,
            "side": TEXT,
            **dict.fromkeys(("price", "size", "value_usd"), NUMBER),
            "tx_hash": TEXT,
            "trade_id": WHOLE,
            "seq": WHOLE,
        },
    ),
    Topic(
        "candles",
        "Prices by the minute, one row an outcome and minute with trades.",
        queries.candles,
        {
            "ts": INSTANT,
            **OF_OUTCOME,
            **dict.fromkeys(("open", "high", "low", "close", "volume", "value_usd"), NUMBER),
            "trades": WHOLE,
        },
        asset="candles_1m",
    ),
    Topic(
        "settlements",
        "Fills as the chain settled them, one row an order of a match; sum only those that are `counted`.",
        queries.settlements,
        {
            "ts": INSTANT,
            "block_number": WHOLE,
            "log_index": WHOLE,
            "tx_hash": TEXT,
            **OF_MARKET,
            "token_id": TEXT,
            "outcome": SMALL,
            "outcome_name": TEXT,
            **dict.fromkeys(("maker", "taker", "side"), TEXT),
            **dict.fromkeys(("price", "size", "value_usd", "fee_usd"), NUMBER),
            "is_taker_order": FLAG,
            "counted": FLAG,
        },
        of_chain=True,
    ),
    Topic(
        "book_events",
        "What happened to the order books: whole books and changed levels, with the level's new total; 0 removes it.",
        queries.book_events,
        {
            "ts": INSTANT,
            **OF_OUTCOME,
            "kind": TEXT,
            "side": TEXT,
            **dict.fromkeys(("price", "size"), NUMBER),
            **dict.fromkeys(("bids", "asks", "hash"), TEXT),
            "seq": WHOLE,
        },
        parts=24,  # a day of the whole exchange is some 582 million rows
        is_packed=True,
    ),
)
TOPICS = tuple(
    topic.of(exchange)
    for exchange in EXCHANGES.values()
    for topic in _TOPICS
    if exchange.has_chain or not topic.of_chain
)
BY_NAME = {topic.name: topic for topic in TOPICS}
