"""A pass over both catalogues: open markets with similar titles are paired, and pairs with new texts are judged."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from cachetools import LRUCache

from orchestration.equivalents import candidates as pairing
from orchestration.equivalents import reader
from orchestration.equivalents.judge import RULES_VERSION, judge_readings
from orchestration.equivalents.questions import MarketText, from_kalshi, from_polymarket
from sql.queries import equivalents as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import psycopg

    from orchestration.equivalents.judge import Verdict
    from orchestration.equivalents.questions import Reading

LEFT, RIGHT = "polymarket", "kalshi"
PASS_S = 1200.0  # of judging; what is left is for the next pass
MAX_PAIRS = 300_000  # of a pass
PAIRS_AT_ONCE = 2_000
MAX_READINGS = 50_000  # kept between batches: a market is in several pairs
MAX_DETAIL = 300

TEXTS: dict[str, Callable[[dict[str, Any], str], MarketText]] = {
    "polymarket": lambda market, _title: from_polymarket(market),
    "kalshi": from_kalshi,
}


@dataclass
class PassReport:
    """What a pass has done."""

    left: int = 0
    right: int = 0
    candidates: int = 0
    judged: int = 0
    due: int = 0
    forgotten: int = 0


def compare(conn: psycopg.Connection[Any], *, seconds: float = PASS_S) -> PassReport:
    """Pair the open markets of both exchanges, and judge pairs for some time. Takes an autocommit connection."""
    queries.begin(conn)
    queries.make_room(conn)
    queries.hash_texts(conn, exchanges=[LEFT, RIGHT])
    report = PassReport()
    left_keys, left = _titles(conn, LEFT)
    right_keys, right = _titles(conn, RIGHT)
    report.left, report.right = len(left), len(right)
    with conn.cursor() as cursor, cursor.copy("copy candidates (left_key, right_key, score) from stdin") as copy:
        for pair in pairing.candidates(left, right):
            copy.write_row((left_keys[pair.left], right_keys[pair.right], pair.score))
            report.candidates += 1
    conn.execute("analyze market_texts, candidates")
    report.forgotten = queries.forget_ended(conn)
    deadline = time.monotonic() + seconds
    due = list(queries.due(conn, rules_version=RULES_VERSION, most=MAX_PAIRS))
    readings: LRUCache[int, Reading] = LRUCache(MAX_READINGS)
    for start in range(0, len(due), PAIRS_AT_ONCE):
        if time.monotonic() > deadline:
            break
        batch = [pair[:-1] for pair in due[start : start + PAIRS_AT_ONCE]]
        _judge(conn, batch, readings)
        report.judged += len(batch)
    report.due = (due[0][-1] if due else 0) - report.judged
    queries.finish(conn, left=report.due)
    return report


def _titles(conn: psycopg.Connection[Any], exchange: str) -> tuple[list[int], list[str]]:
    keys, titles = [], []
    for key, question, label in queries.titles(conn, exchange=exchange):
        keys.append(key)
        titles.append(pairing.title(MarketText(exchange, "", question, "", label=label)))  # type: ignore[arg-type]
    return keys, titles


def _judge(conn: psycopg.Connection[Any], pairs: Sequence[tuple[Any, ...]], readings: LRUCache[int, Reading]) -> None:
    """Judge some pairs and store the verdicts."""
    missing = {key for left, right, *_ in pairs for key in (left, right)}.difference(readings)
    fresh = dict(_read(conn, list(missing)))
    known = {key: readings[key] for left, right, *_ in pairs for key in (left, right) if key in readings} | fresh
    readings.update(fresh)
    verdicts = [judge_readings(known[left], known[right]) for left, right, *_ in pairs]
    columns = zip(*((*pair, *_columns(verdict)) for pair, verdict in zip(pairs, verdicts, strict=True)), strict=True)
    names = (
        *("left_keys", "right_keys", "scores", "left_texts", "right_texts"),
        *("verdicts", "clauses", "details", "withins"),
    )
    arguments = {name: list(column) for name, column in zip(names, columns, strict=True)}
    queries.save(conn, rules_version=RULES_VERSION, **arguments)


def _read(conn: psycopg.Connection[Any], keys: list[int]) -> Iterator[tuple[int, Reading]]:
    for key, exchange, raw, event_title in queries.texts(conn, market_keys=keys):
        yield key, reader.read(TEXTS[exchange](msgspec.json.decode(raw or "{}"), event_title or ""))


def _columns(verdict: Verdict) -> tuple[str, str | None, str, str | None]:
    return verdict.verdict, verdict.clause, verdict.detail.replace("\0", "")[:MAX_DETAIL], verdict.within
