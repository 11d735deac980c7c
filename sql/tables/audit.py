"""The audit trail: who changed or tried what."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Identity, Index, Integer, LargeBinary, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB

from sql.tables.base import EMPTY_OBJECT, NOW, Time, metadata

audit_log = Table(
    "audit_log",
    metadata,
    Column("ts", Time, primary_key=True, server_default=NOW, comment="When; of counted requests, their minute"),
    Column("entry_id", BigInteger, Identity(always=True), primary_key=True),
    Column("action", Text, nullable=False, comment="Such as key.failed, account.register, webhook.delete, key.revoke"),
    Column("result", Text, nullable=False, comment="ok, started or failed; of counted requests why they were refused"),
    Column("times", BigInteger, nullable=False, server_default=text("1"), comment="How many requests this row counts"),
    Column("account_id", BigInteger, comment="The account that did it, or that an operator did it to"),
    Column("key_id", Integer, comment="The same, of the key"),
    Column("operator", Text, comment="User and host of a command; null: it was a request"),
    Column(
        "address", Text, comment="Of the client: an IPv4 address or an IPv6 /64; others: beyond those counted singly"
    ),
    Column("subject", Text, comment="What it was done to, if not an account or a key"),
    Column("detail", JSONB, nullable=False, server_default=EMPTY_OBJECT),
    Index("audit_log_account_idx", "account_id", text("ts desc"), postgresql_where=text("account_id is not null")),
    Index("audit_log_operator_idx", "action", text("ts desc"), postgresql_where=text("operator is not null")),
    comment="Who changed or tried what; rows are added, never changed, and dropped by whole chunks",
    info={"timescale": "hypertable", "time": "ts", "chunk": "30 days"},
)

audit_counts = Table(
    "audit_counts",
    metadata,
    Column("minute", Time, primary_key=True, comment="Its first instant"),
    Column("action", Text, primary_key=True),
    Column("result", Text, primary_key=True),
    Column("address", Text, primary_key=True),
    Column("account_id", BigInteger, primary_key=True, autoincrement=False, comment="0: unknown"),
    Column("key_id", Integer, primary_key=True, autoincrement=False, comment="0: unknown"),
    Column("times", BigInteger, nullable=False),
    comment="Requests of minutes that are not over yet; they move to audit_log",
)

ended_keys = Table(
    "ended_keys",
    metadata,
    Column("key_hash", LargeBinary, primary_key=True, comment="SHA-256 of a key that was replaced"),
    Column("key_id", Integer, ForeignKey("api_keys.key_id"), nullable=False),
    Column("ended_at", Time, nullable=False, server_default=NOW, index=True),
    comment="Replaced keys, by which their further use is recognised",
)
