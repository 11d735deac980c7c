"""The audit trail: an entry is a row that nobody can change, and a line in the log."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg

from sql.queries import audit as queries

if TYPE_CHECKING:
    from datetime import datetime

log = logging.getLogger("presage.audit")


@dataclass
class Entry:
    """Who did what, to what, with what result. It never holds a key, a secret, a token or an email address."""

    action: str
    result: str = "ok"
    account_id: int | None = None
    key_id: int | None = None
    operator: str | None = None
    address: str | None = None
    subject: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    times: int = 1
    ts: datetime | None = None
    stored: bool = False


def add(conn: psycopg.Connection[Any], entry: Entry) -> None:
    """Store an entry in the current transaction. A failure does not end that: `report` reports it."""
    try:
        with conn.transaction():
            queries.add(
                conn,
                action=entry.action,
                result=entry.result,
                account_id=entry.account_id,
                key_id=entry.key_id,
                operator=entry.operator,
                address=entry.address,
                subject=entry.subject,
                detail=json.dumps(entry.detail),
            )
    except psycopg.Error as error:
        entry.detail = {**entry.detail, "not_stored": type(error).__name__}
    else:
        entry.stored = True


def report(entry: Entry) -> None:
    """Log an entry, once its transaction has ended."""
    known = {name: value for name, value in asdict(entry).items() if value not in (None, {})}
    if entry.ts is not None:
        known["ts"] = entry.ts.isoformat()
    log.log(
        logging.ERROR if "not_stored" in entry.detail else logging.INFO,
        "%s: %s",
        entry.action,
        entry.result,
        extra={"audit": known},
    )


def fingerprint(text: str) -> str:
    """Return a digest of what must not be stored, to recognise it by."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
