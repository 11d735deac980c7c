"""Rows that the exchange's log says it sent, compared with those stored."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

    import psycopg

KINDS = ("trade", "level")  # lines of the log that are stored as a row each
STORED = """
    select t.token_id, sum(rows.count)::bigint
    from (
        select market_key, outcome, count(*) from trades
        where ts > to_timestamp(%(from_s)s) and ts <= to_timestamp(%(to_s)s)
        group by market_key, outcome
        union all
        select market_key, outcome, count(*) from book_events
        where side is not null and ts > to_timestamp(%(from_s)s) and ts <= to_timestamp(%(to_s)s)
        group by market_key, outcome
    ) as rows
    join tokens t using (market_key, outcome)
    group by t.token_id
"""

WITH_A_GAP = """
    select distinct t.token_id
    from tokens t join coverage_gaps g on g.market_key = t.market_key or g.market_key is null
    where t.token_id = any(%(tokens)s) and g.from_ts <= to_timestamp(%(to_s)s)
        and coalesce(g.to_ts, 'infinity') >= to_timestamp(%(from_s)s)
"""


class Rows(NamedTuple):
    """Numbers of rows."""

    sent: int
    stored: int
    lost: int
    known: int  # of the lost ones, those of markets with a gap recorded in that time
    unheard: int  # sent to nobody: the first ones of new markets, before anyone can have subscribed


class _Line(msgspec.Struct):
    kind: str
    token: str = ""
    ts_ms: int = 0
    sent: int = 0  # to how many sockets


def compare(conn: psycopg.Connection[Any], log: Path, offset: int, *, from_ms: int, to_ms: int) -> Rows:
    """Compare rows between two instants of the exchange's clock, the last one included; read the log from an offset."""
    sent: Counter[str] = Counter()
    unheard = 0
    decode = msgspec.json.Decoder(_Line).decode
    with log.open("rb") as lines:
        lines.seek(max(offset - 1, 0))
        if offset:
            lines.readline()  # the rest of a line that was being written
        for text in lines:
            line = decode(text)
            if line.kind in KINDS and from_ms < line.ts_ms <= to_ms:
                if line.sent:
                    sent[line.token] += 1
                else:
                    unheard += 1
    span = {"from_s": from_ms / 1000, "to_s": to_ms / 1000}
    stored = Counter(dict(conn.execute(STORED, span).fetchall()))
    lost = sent - stored
    known = sum(lost[token] for (token,) in conn.execute(WITH_A_GAP, {**span, "tokens": [*lost]}))
    return Rows(sent.total(), stored.total(), lost.total(), known, unheard)
