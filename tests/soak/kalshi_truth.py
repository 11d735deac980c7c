"""Reads the log of the sandbox Kalshi, and the rows that the database has of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from sql.database import micro
from tests.soak.truth import SentEvents
from upstream.kalshi.fields import token_id
from upstream.sandbox.kalshi.exchange.listings import COMBOS
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

    import psycopg

TRADES = """
select t.token_id, as_ms(d.ts), d.side, d.price, d.size
from trades d join tokens t using (market_key, outcome) join markets m using (market_key)
where m.exchange = 'kalshi' and d.ts between to_timestamp(%s / 1000.0) and to_timestamp(%s / 1000.0)
"""
CHANGES = """
select t.token_id, as_ms(e.ts), e.side, e.price, e.size
from book_events e join tokens t using (market_key, outcome) join markets m using (market_key)
where m.exchange = 'kalshi' and e.side is not null
    and e.ts between to_timestamp(%s / 1000.0) and to_timestamp(%s / 1000.0)
"""
FOLLOWED = "select market_id from markets where exchange = 'kalshi' and order_book"


class Message(msgspec.Struct):
    """The fields of a message that are used here."""

    market_ticker: str = ""
    ts_ms: int | None = None
    side: str = ""
    price_dollars: str = "0"
    taker_outcome_side: str = ""
    yes_price_dollars: str = "0"
    count_fp: str = "0"
    event_type: str = ""


class Line(msgspec.Struct):
    """A line of the log: a message as subscribers get it, and the new size of its level."""

    kind: str
    ts_ms: int = 0
    msg: Message | None = None
    size_fp: str | None = None


def listed(file: Path, until_ms: int) -> set[str]:
    """Read the tickers of markets that were announced by a moment, without combos, which are not followed."""
    decode = msgspec.json.Decoder(Line).decode
    with file.open("rb") as lines:
        whole = (decode(text) for text in lines if b'"created"' in text and text.endswith(b"\n"))
        return {
            line.msg.market_ticker
            for line in whole
            if line.kind == "market_lifecycle_v2" and line.msg and line.msg.event_type == "created"
            if line.ts_ms <= until_ms and not line.msg.market_ticker.startswith(COMBOS)
        }


def sent(file: Path, followed: Container[str], *, from_ms: int, to_ms: int) -> SentEvents:
    """Read what was sent of some markets in a span: trades of YES, and both outcomes' levels."""
    trades: Counter[Any] = Counter()
    changes: Counter[Any] = Counter()
    decode = msgspec.json.Decoder(Line).decode
    with file.open("rb") as lines:
        for text in lines:
            if not text.endswith(b"\n"):  # the exchange is writing it
                break
            line = decode(text)
            if line.kind not in ("trade", "orderbook_delta") or line.msg is None:
                continue
            msg = line.msg
            ticker, ts_ms = msg.market_ticker, msg.ts_ms or 0
            if ticker not in followed or not from_ms <= ts_ms <= to_ms:
                continue
            if line.kind == "trade":
                side = 1 if msg.taker_outcome_side == "yes" else -1
                price, size = micro(msg.yes_price_dollars), micro(msg.count_fp)
                trades[token_id(ticker, 0), ts_ms, side, price, size] += 1
            else:
                price, size = micro(msg.price_dollars), micro(line.size_fp or "0")  # of YES, on either side
                side = 1 if msg.side == "yes" else -1
                changes[token_id(ticker, 0), ts_ms, side, price, size] += 1
                changes[token_id(ticker, 1), ts_ms, -side, ONE - price, size] += 1
    return SentEvents({"trades": trades, "level changes": changes}, Counter())


def stored(conn: psycopg.Connection[Any], *, from_ms: int, to_ms: int) -> dict[str, Counter[Any]]:
    """Read the database's rows in a span."""
    return {
        kind: Counter(conn.execute(query, [from_ms, to_ms]).fetchall())
        for kind, query in (("trades", TRADES), ("level changes", CHANGES))
    }


def followed(conn: psycopg.Connection[Any]) -> set[str]:
    """Return the tickers of the stored markets that have an order book."""
    return {ticker for (ticker,) in conn.execute(FOLLOWED)}
