"""Derived data written in the settlements' transaction: watched wallets, positions, whale alerts.

The writer of settlements calls `written` after inserting the rows of some blocks, and `withdrawn` before deleting the
rows of revoked blocks. Both return stream messages in the order of the chain; the writer publishes them with its own,
last of all. Everything is done in sets, over the blocks' rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from config import tunables
from orchestration import stream
from sql.database import MICRO
from sql.queries import capture as queries

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import psycopg

WHALE = "whale_alert_usd"


class CaptureState(NamedTuple):
    """The work to do for some blocks."""

    claimed: int  # positions were computed from all blocks up to here, or are being computed
    first_ts: datetime | None  # null if the blocks are not stored
    last_ts: datetime | None
    watched: bool
    followed: bool
    entries: bool  # the ledger has some


def written(conn: psycopg.Connection[Any], numbers: Sequence[int], *, live: bool) -> list[stream.StreamMessage]:
    """Process blocks whose rows (blocks, settlements, fills, ledger) were just written in this transaction.

    `live`: at the head of the chain, so messages are published; backfilled blocks are only stored.
    """
    if not numbers:
        return []
    queries.share_watching(conn)
    standing, span = _capture_state(conn, numbers)
    if standing.first_ts is None:
        return []
    if standing.entries:
        queries.name_tokens(conn, **span)
        queries.add_changes(conn, **span)
        queries.share_redemptions(conn, **span, claimed=standing.claimed)
    if min(numbers) <= standing.claimed:
        queries.add_due(conn, **span, claimed=standing.claimed)
    if standing.watched:
        queries.add_activity(conn, **span)
    threshold = tunables.value(conn, WHALE)
    whales = list(queries.add_whales(conn, **span, least=round(threshold * MICRO), threshold=threshold))
    if not live:
        return []
    activity = list(queries.published_activity(conn, **span)) if standing.watched or standing.followed else []
    return [
        *(_message("wallet_activity", ts, market, record, wallet) for wallet, ts, market, record in activity),
        *(_message("signal", *whale) for whale in whales),
    ]


def withdrawn(conn: psycopg.Connection[Any], numbers: Sequence[int]) -> list[stream.StreamMessage]:
    """Undo the effects of blocks whose rows are about to be deleted in this transaction.

    The messages are those that were published for them, with `revoked`.
    """
    if not numbers:
        return []
    standing, span = _capture_state(conn, numbers)
    if standing.first_ts is None:
        return []
    if min(numbers) <= standing.claimed:
        queries.add_due(conn, **span, claimed=standing.claimed)
    activity = list(queries.published_activity(conn, **span)) if standing.watched or standing.followed else []
    whales = list(queries.take_back_whales(conn, **span))
    queries.take_back_activity(conn, **span)
    if standing.entries:
        queries.take_back_changes(conn, **span)
    return [
        *(
            _message("wallet_activity", ts, market, f'{record[:-1]},"revoked":true}}', wallet)
            for wallet, ts, market, record in activity
        ),
        *(_message("signal", *whale) for whale in whales),
    ]


def _capture_state(conn: psycopg.Connection[Any], numbers: Sequence[int]) -> tuple[CaptureState, dict[str, Any]]:
    standing = CaptureState(*queries.standing(conn, numbers=list(numbers)))
    return standing, {"numbers": list(numbers), "first_ts": standing.first_ts, "last_ts": standing.last_ts}


def _message(
    type_: str, ts: int, market_id: str | None, record: str, wallet: bytes | None = None
) -> stream.StreamMessage:
    return stream.message(type_, ts, market_id, msgspec.Raw(record.encode()), wallet)
