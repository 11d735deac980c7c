"""Kinds of recordings, recognised by a file's columns, whatever its name and format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upstream.sandbox.tape import files

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    from upstream.sandbox.tape.files import File, Row

MAX_COLUMNS_SHOWN = 12
MISSING_SHARE = 3  # a file that lacks a third of a kind's columns is not reported as similar to it
MAX_SAMPLED_OBJECTS = 1_000  # objects of a list whose keys are read


@dataclass(frozen=True)
class Kind:
    """A kind of file: a file is of the first kind all of whose columns it has. `plain`: read as if it were CSV."""

    name: str
    needs: tuple[str, ...]
    also: tuple[str, ...] = ()
    plain: bool = False
    why_not: str = ""


CANDLE = Kind("trades of a five-minute market", ("cid", "cs", "up_token", "down_token", "trades"))
SOCKET = Kind(
    "market socket, a row a level",
    ("market_slug", "asset_id", "event_type", "price", "side", "size", "hash", "timestamp"),
    ("market_id", "outcome_name"),
    plain=True,
)
OLD_SHAPE = Kind("market socket, a row a message", ("asset_id", "market", "timestamp", "hash", "changes"), plain=True)
QUARTER_BOOKS = Kind(
    "books of quarter-hour markets", ("market_id", "ts", "side", "bid_px", "bid_sz", "ask_px", "ask_sz")
)
QUARTER_MARKETS = Kind(
    "quarter-hour markets",
    ("market_id", "slug", "question", "outcome_up", "outcome_down", "start_ts", "end_ts", "payout_up"),
)
FIVE_LEVELS = Kind(
    "books of five levels",
    ("timestamp_ms", "token_id", "bid_1_price", "bid_1_size", "ask_1_price", "ask_1_size"),
    tuple(f"{side}_{depth}_{what}" for side in ("bid", "ask") for depth in range(2, 6) for what in ("price", "size")),
    plain=True,
)
UP_DOWN_MARKETS = Kind(
    "up/down markets",
    ("condition_id", "market_slug", "question", "token_id_up", "token_id_down"),
    ("end_date", "end_ts_ms"),
    plain=True,
)
FIVE_MINUTE_MARKETS = Kind("five-minute markets", ("timestamp", "slug", "up_token_id", "down_token_id"), plain=True)
UP_DOWN_TRADES = Kind(
    "up/down trades",
    ("timestamp_ms", "token_id", "side", "price", "size", "trade_id", "maker_address"),
    plain=True,
)
CAPTURE_MARKETS = Kind(
    "market socket, best prices",
    ("asset_id", "market_id", "question", "event_title", "event_id", "answer", "best_bid"),
)
STILL_BOOKS = Kind("books", ("asset_id", "bids", "asks"))
DATA_API = Kind(
    "Data API trades",
    ("timestamp", "asset", "conditionId", "side", "price", "size"),
    ("transactionHash", "proxyWallet", "outcome", "outcomeIndex", "title", "slug", "icon", "eventSlug"),
)
GAMMA_MARKETS = Kind("Gamma markets", ("id", "conditionId", "question"))
GAMMA_LINES = Kind("Gamma markets", ("slug", "raw"))
GAMMA_EVENTS = Kind("Gamma events", ("id", "title", "markets"))
CLOB_MARKETS = Kind("CLOB markets", ("condition_id", "tokens", "question", "market_slug"))
SIMPLIFIED = Kind("CLOB simplified markets", ("condition_id", "tokens"))

_NO_TOKENS = "names neither tokens nor conditions"
_PUBLISHERS = "in words of its publisher, without tokens or conditions"
KINDS = (
    CANDLE,
    SOCKET,
    OLD_SHAPE,
    QUARTER_BOOKS,
    QUARTER_MARKETS,
    FIVE_LEVELS,
    UP_DOWN_MARKETS,
    FIVE_MINUTE_MARKETS,
    UP_DOWN_TRADES,
    CAPTURE_MARKETS,
    STILL_BOOKS,
    Kind(
        "a wallet's activity", ("proxyWallet", "type", "usdcSize"), why_not="a wallet's activity: no trades of a market"
    ),
    DATA_API,
    GAMMA_MARKETS,
    GAMMA_LINES,
    GAMMA_EVENTS,
    CLOB_MARKETS,
    SIMPLIFIED,
    Kind("positions", ("proxyWallet", "avgPrice"), why_not="positions of a wallet: nothing happens in them"),
    Kind("leaderboard", ("rank", "proxyWallet"), why_not="a leaderboard: nothing happens in it"),
    Kind("price history", ("history",), why_not="a history of prices, which names no token"),
    Kind(
        "quotes",
        ("slug", "bid", "ask", "mid", "segment"),
        why_not="names no tokens, and none of the markets that the catalogues describe",
    ),
    Kind(
        "best prices",
        ("timestamp_ms", "market_ts", "bid", "ask", "bid_depth"),
        why_not="every row says 0.01 to 0.99, the worst levels instead of the best",
    ),
    Kind("trades", ("trade_id", "transaction_hash", "user_id", "amount"), why_not=_NO_TOKENS),
    Kind("trades", ("tx", "wallet", "usd"), why_not="names no tokens, and hardly any conditions"),
    Kind("catalogue", ("slug", "category", "n_snaps"), why_not=_PUBLISHERS),
    Kind("labels", ("slug", "y"), why_not=_PUBLISHERS),
    Kind("publisher's table", ("market_id", "venue", "license"), why_not=_PUBLISHERS),
    Kind("market snapshots", ("snapshot", "platform", "yes_price"), why_not=_PUBLISHERS),
    Kind(
        "logs of a chain",
        ("topics", "data"),
        why_not="logs of the chain; the trades of a tape are settled on a simulated one",
    ),
)


@dataclass
class Content:
    """The content of a file: its rows, read on request."""

    kind: Kind
    file: File
    rows: Callable[[], Iterator[tuple[int, Row]]]
    table: Callable[[], pa.Table]


def content(file: File, data: bytes) -> Content:
    """Recognise a file's content; UnreadableError with the reason if it is of no use."""
    if data[:4] == files.PARQUET:
        return _of_parquet(file, files.parquet(data))
    text = files.as_text(data)
    if not text.strip():
        raise files.UnreadableError("empty")
    if text.lstrip()[:1] in {"{", "["}:
        return _of_json(file, text)
    table = files.Csv(file, text)
    kind = _recognise(file, table.columns)
    return Content(kind, file, table.rows, _no_table)


def _of_json(file: File, text: str) -> Content:
    rows = _rows(files.load_json(text))
    columns = dict.fromkeys(key for row in rows[:MAX_SAMPLED_OBJECTS] if isinstance(row, dict) for key in row)
    kind = _recognise(file, columns)

    def read() -> Iterator[tuple[int, Row]]:
        for number, row in files.objects(file, rows, text):
            missing = [name for name in kind.needs if name not in row]
            if missing and kind not in {GAMMA_MARKETS, GAMMA_EVENTS, GAMMA_LINES}:
                file.leave(f"has no {missing[0]}", number)
            else:
                yield number, _plain(row) if kind.plain else row

    return Content(kind, file, read, _no_table)


def _rows(whole: Any) -> list[Any]:
    """Return the list of objects in a response; an object by itself is a list of one."""
    if isinstance(whole, list):
        return whole
    if not isinstance(whole, dict):
        raise files.UnreadableError("unknown kind: JSON, but neither a list nor an object")
    if isinstance(whole.get("data"), list):
        return list(whole["data"])
    lists = [whole[name] for name in ("events", "markets") if isinstance(whole.get(name), list)]
    return [row for rows in lists for row in rows] if lists and "id" not in whole else [whole]


def _of_parquet(file: File, source: ParquetFile) -> Content:
    names = source.schema_arrow.names
    kind = _recognise(file, names)
    columns = [name for name in (*kind.needs, *kind.also) if names.count(name) == 1]

    def table() -> pa.Table:
        if missing := [name for name in kind.needs if name not in columns]:
            raise files.UnreadableError(f"has column {missing[0]} twice")
        return files.table(file, source, columns)

    def read() -> Iterator[tuple[int, Row]]:
        for number, row in enumerate(table().to_pylist(), 1):
            yield number, _plain(row) if kind.plain else row

    return Content(kind, file, read, table)


def _recognise(file: File, columns: Collection[str]) -> Kind:
    there = set(columns)
    found = next((kind for kind in KINDS if there.issuperset(kind.needs)), None)
    if found is None:
        near = max(KINDS, key=lambda kind: len(there.intersection(kind.needs)) / len(kind.needs))
        missing = [name for name in near.needs if name not in there]
        if len(missing) <= len(near.needs) // MISSING_SHARE and not near.why_not:
            file.kind = near.name
            raise files.UnreadableError(f"looks like {near.name}, but has no column {' and no '.join(missing)}")
        shown = ", ".join(repr(name)[1:-1][:40] for name in list(columns)[:MAX_COLUMNS_SHOWN])
        raise files.UnreadableError(f"unknown kind: columns {shown or 'none'}")
    file.kind = found.name
    if found.why_not:
        raise files.UnreadableError(found.why_not)
    return found


def _plain(row: Row) -> Row:
    return {name: "" if value is None else str(value) for name, value in row.items()}


def _no_table() -> pa.Table:
    raise files.UnreadableError("not Parquet")
