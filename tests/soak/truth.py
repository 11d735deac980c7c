"""Compares what the sandbox's log says it sent with what the database stores."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

import msgspec

from sql.database import micro

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg

Row = tuple[Any, ...]  # token, timestamp in ms, side, price, size; a trade's transaction

SIDES = {"BUY": 1, "SELL": -1}
TRADES, CHANGES = "trades", "level changes"
QUERIES: dict[str, LiteralString] = {
    TRADES: """
        select token_id, (extract(epoch from ts) * 1000)::bigint, side, price, size, '0x' || encode(tx_hash, 'hex')
        from trades join tokens using (market_key, outcome) where ts between to_timestamp(%s) and to_timestamp(%s)
    """,
    CHANGES: """
        select token_id, (extract(epoch from ts) * 1000)::bigint, side, price, size
        from book_events join tokens using (market_key, outcome)
        where side is not null and ts between to_timestamp(%s) and to_timestamp(%s)
    """,
}
FETCHED_ROWS = 50_000  # at a time
LISTING_MS = 1_000  # orders go to a market's subscribers only, and nobody can subscribe before it is listed


class Line(msgspec.Struct):
    """A line of the truth log: the fields used here."""

    kind: str
    token: str = ""
    ts_ms: int = 0
    side: str = ""
    price: str = ""
    size: str = ""
    tx: str = ""
    detail: dict[str, Any] | None = None


class Difference(NamedTuple):
    """Rows of one kind that are in one source and not in the other."""

    compared: int
    lost: Counter[Any]
    doubled: Counter[Any]

    def __str__(self) -> str:
        return f"{self.compared:,} compared, {self.lost.total()} lost, {self.doubled.total()} doubled or invented"


class SentEvents(NamedTuple):
    """Events of the exchange, by kind of row, and those in the first second of a market.

    The latter may be missing: the first book, which comes with the subscription, includes them.
    """

    rows: dict[str, Counter[Any]]
    early: Counter[Any]


def sent_rows(file: Path, *, from_ms: int, to_ms: int) -> Iterator[tuple[str, Row, bool]]:
    """Yield the exchange's events in a span of its own clock, the last instant included: kind, row, whether early."""
    listed: dict[str, int] = {}
    decode = msgspec.json.Decoder(Line).decode
    with file.open("rb") as lines:
        for text in lines:
            if not text.endswith(b"\n"):  # the exchange is writing it
                break
            line = decode(text)
            if line.kind == "new_market" and line.detail:
                listed |= dict.fromkeys(line.detail["tokens"], line.ts_ms)
            if line.kind not in ("trade", "level") or not from_ms <= line.ts_ms <= to_ms:
                continue
            what = (line.token, line.ts_ms, SIDES[line.side], micro(line.price), micro(line.size))
            early = line.token in listed and line.ts_ms <= listed[line.token] + LISTING_MS
            yield (TRADES, (*what, line.tx), early) if line.kind == "trade" else (CHANGES, what, early)


def sent(file: Path, *, from_ms: int, to_ms: int) -> SentEvents:
    """Read the exchange's events in a span of its own clock, the last instant included."""
    rows: dict[str, Counter[Any]] = {TRADES: Counter(), CHANGES: Counter()}
    early: Counter[Any] = Counter()
    for kind, row, is_early in sent_rows(file, from_ms=from_ms, to_ms=to_ms):
        rows[kind][row] += 1
        if is_early:
            early[row] += 1
    return SentEvents(rows, early)


def announced(file: Path) -> set[str]:
    """Read the tokens of markets that the exchange has announced."""
    decode = msgspec.json.Decoder(Line).decode
    with file.open("rb") as lines:
        whole = (decode(text) for text in lines if b'"new_market"' in text and text.endswith(b"\n"))
        return {token for line in whole if line.kind == "new_market" for token in line.detail["tokens"]}


def stored_rows(conn: psycopg.Connection[Any], *, from_ms: int, to_ms: int) -> Iterator[tuple[str, Row]]:
    """Yield the database's rows in a span, each with its kind, from a cursor on the server."""
    for kind, query in QUERIES.items():
        with conn.transaction(), conn.cursor(name="stored_rows") as cursor:
            cursor.itersize = FETCHED_ROWS
            cursor.execute(query, (from_ms / 1000, to_ms / 1000))
            for row in cursor:
                yield kind, row


def stored(conn: psycopg.Connection[Any], *, from_ms: int, to_ms: int) -> dict[str, Counter[Any]]:
    """Read the database's rows in a span."""
    rows: dict[str, Counter[Any]] = {TRADES: Counter(), CHANGES: Counter()}
    for kind, row in stored_rows(conn, from_ms=from_ms, to_ms=to_ms):
        rows[kind][row] += 1
    return rows


def compare(truth: SentEvents, found: dict[str, Counter[Any]]) -> dict[str, Difference]:
    """Count missing and surplus rows; a trade from before its market was followed may be there as the list has it."""
    differences = {}
    for kind, expected in truth.rows.items():
        missing, surplus = expected - found[kind], found[kind] - expected
        listed = Counter({_listed(row): count for row, count in (missing & truth.early).items()})
        differences[kind] = Difference(
            expected.total(), missing - truth.early, surplus - listed if kind == "trades" else surplus
        )
    return differences


def _listed(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with the timestamp that the exchange's list gives it: a whole second."""
    token, ts_ms, *what = row
    return token, ts_ms // 1000 * 1000, *what


def log_lines(file: Path, difference: Difference, max_rows: int = 3) -> list[str]:
    """Return the log lines of lost or surplus rows: every line of their tokens and timestamps."""
    wanted = {(row[0], row[1]) for row in [*difference.lost, *difference.doubled][:max_rows]}
    decode = msgspec.json.Decoder(Line).decode
    with file.open("rb") as lines:
        return [text.decode().strip() for text in lines if ((line := decode(text)).token, line.ts_ms) in wanted]
