"""What the sandbox says it sent, beside what the database holds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from sql.database import micro

if TYPE_CHECKING:
    from pathlib import Path

    import psycopg

SIDES = {"BUY": 1, "SELL": -1}
LISTING_MS = 1_000  # the exchange tells of a market's orders only who asked for it, and nobody can before it is listed


class Line(msgspec.Struct):
    """A line of the truth log, as far as it matters here."""

    kind: str
    token: str = ""
    ts_ms: int = 0
    side: str = ""
    price: str = ""
    size: str = ""
    tx: str = ""
    detail: dict[str, Any] | None = None


class Difference(NamedTuple):
    """Rows that are in one and not in the other, by kind of row."""

    compared: int
    lost: Counter[Any]
    doubled: Counter[Any]

    def __str__(self) -> str:
        return f"{self.compared:,} compared, {self.lost.total()} lost, {self.doubled.total()} doubled or invented"


class Told(NamedTuple):
    """What happened on the exchange, by kind of row; and what of it happened in the first second of a market.

    The latter may be missing: the first book, which comes with the subscription, holds it.
    """

    rows: dict[str, Counter[Any]]
    early: Counter[Any]


def told(file: Path, *, from_ms: int, to_ms: int) -> Told:
    """Read what happened on the exchange in a span, by the exchange's own clock; the span's last instant included."""
    listed: dict[str, int] = {}
    early: Counter[Any] = Counter()
    decode = msgspec.json.Decoder(Line).decode
    trades: Counter[Any] = Counter()
    changes: Counter[Any] = Counter()
    with file.open("rb") as lines:
        for text in lines:
            line = decode(text)
            if line.kind == "new_market" and line.detail:
                listed |= dict.fromkeys(line.detail["tokens"], line.ts_ms)
            if line.kind not in ("trade", "level") or not from_ms <= line.ts_ms <= to_ms:
                continue
            what = (line.token, line.ts_ms, SIDES[line.side], micro(line.price), micro(line.size))
            row, rows = ((*what, line.tx), trades) if line.kind == "trade" else (what, changes)
            rows[row] += 1
            if line.token in listed and line.ts_ms <= listed[line.token] + LISTING_MS:
                early[row] += 1
    return Told({"trades": trades, "level changes": changes}, early)


def held(conn: psycopg.Connection[Any], *, from_ms: int, to_ms: int) -> dict[str, Counter[Any]]:
    """Read what the database holds of a span."""
    span = (from_ms / 1000, to_ms / 1000)
    trades = conn.execute(
        """select token_id, (extract(epoch from ts) * 1000)::bigint, side, price, size, '0x' || encode(tx_hash, 'hex')
        from trades join tokens using (market_key, outcome) where ts between to_timestamp(%s) and to_timestamp(%s)""",
        span,
    ).fetchall()
    changes = conn.execute(
        """select token_id, (extract(epoch from ts) * 1000)::bigint, side, price, size
        from book_events join tokens using (market_key, outcome)
        where side is not null and ts between to_timestamp(%s) and to_timestamp(%s)""",
        span,
    ).fetchall()
    return {"trades": Counter(trades), "level changes": Counter(changes)}


def compare(truth: Told, found: dict[str, Counter[Any]]) -> dict[str, Difference]:
    """Count what is missing and what is too much."""
    return {
        kind: Difference(expected.total(), expected - found[kind] - truth.early, found[kind] - expected)
        for kind, expected in truth.rows.items()
    }


def story(file: Path, difference: Difference, most: int = 3) -> list[str]:
    """Find what the exchange says around rows that are lost or too much: every line of those tokens and instants."""
    wanted = {(row[0], row[1]) for row in [*difference.lost, *difference.doubled][:most]}
    decode = msgspec.json.Decoder(Line).decode
    with file.open("rb") as lines:
        return [text.decode().strip() for text in lines if ((line := decode(text)).token, line.ts_ms) in wanted]
