"""Webhooks: subscriptions, and each message on its way to a receiver."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from sql.tables.base import NOW, Time, metadata

EMPTY_LIST = text("'[]'::jsonb")
RANDOM = text("gen_random_uuid()")

webhooks = Table(
    "webhooks",
    metadata,
    Column("webhook_id", UUID, primary_key=True, server_default=RANDOM),
    Column("number", BigInteger, Identity(always=True), nullable=False, unique=True, comment="In the order of making"),
    Column("account_id", BigInteger, ForeignKey("accounts.account_id"), nullable=False, index=True),
    Column("url", Text, nullable=False),
    Column("events", ARRAY(Text), nullable=False, comment="Types, or what stands before their dot"),
    Column("market_ids", ARRAY(Text), comment="Null: of any market"),
    Column("wallets", ARRAY(LargeBinary), comment="Null: of any wallet"),
    Column("min_usd", BigInteger, comment="Null: of any value"),
    Column("secret", Text, nullable=False, comment="Signs; a Fernet token, or clear text that begins with whsec_"),
    Column("next_secret", Text, comment="Likewise, while secrets are being rotated: both sign"),
    Column("since_seq", BigInteger, nullable=False, comment="Told of the events after this one"),
    Column("waiting", Integer, nullable=False, server_default=text("0"), comment="Deliveries that are not over"),
    Column("due_at", Time, comment="When the first of them may be tried; null: none waits"),
    Column("disabled_at", Time, comment="Null: enabled"),
    Column("disabled_reason", Text),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("updated_at", Time, nullable=False, server_default=NOW),
    Column(
        "verified_at", Time, server_default=NOW, comment="When the receiver first repeated a challenge; null: never"
    ),
    Column("challenge", Text, comment="What the receiver is to repeat before anything else is sent; null: it has"),
    Column("over_budget_until", Time, comment="The account's messages of the day are used up; null: not known to be"),
    Index("webhooks_due_at_idx", "due_at", postgresql_where=text("due_at is not null and disabled_at is null")),
    info={"fillfactor": 50},
)

webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column(
        "delivery_id", UUID, primary_key=True, server_default=RANDOM, comment="In webhook-id, at each attempt alike"
    ),
    Column("webhook_id", UUID, ForeignKey("webhooks.webhook_id", ondelete="CASCADE"), nullable=False),
    Column("number", BigInteger, Identity(), nullable=False, comment="The order of delivery, tests first"),
    Column("seq", BigInteger, comment="The event's place in the stream; null: a test"),
    Column("type", Text, nullable=False),
    Column("body", Text, nullable=False, comment="As it is sent: what the signature is of"),
    Column("state", Text, nullable=False, server_default=text("'waiting'"), comment="waiting, delivered or failed"),
    Column("attempts", SmallInteger, nullable=False, server_default=text("0"), comment="Of its round of ten"),
    Column("next_at", Time, comment="When it may be tried next; null: it is over"),
    Column("log", JSONB, nullable=False, server_default=EMPTY_LIST, comment="The latest attempts, oldest first"),
    Column("created_at", Time, nullable=False),
    Column("ended_at", Time),
    CheckConstraint("(state = 'waiting') = (next_at is not null)", name="next_at"),
    Index("webhook_deliveries_seq_idx", "webhook_id", "seq", unique=True, postgresql_where=text("seq is not null")),
    Index("webhook_deliveries_number_idx", "webhook_id", "number"),
    Index(
        "webhook_deliveries_waiting_idx",
        "webhook_id",
        text("(seq is not null)"),
        "number",
        postgresql_where=text("state = 'waiting'"),
    ),
    Index("webhook_deliveries_ended_at_idx", "ended_at", postgresql_where=text("ended_at is not null")),
)

webhook_usage = Table(
    "webhook_usage",
    metadata,
    Column("account_id", BigInteger, ForeignKey("accounts.account_id"), primary_key=True, autoincrement=False),
    Column("day", Time, nullable=False, comment="Its first instant, UTC"),
    Column("attempts", BigInteger, nullable=False, server_default=text("0")),
    Column("challenges", Integer, nullable=False, server_default=text("0")),
    comment="What the webhooks of an account were sent on the latest day",
    info={"fillfactor": 50},
)

webhook_head = Table(
    "webhook_head",
    metadata,
    Column("one", Boolean, primary_key=True, server_default=text("true")),
    Column("last_seq", BigInteger, nullable=False, server_default=text("0"), comment="Events up to here are seen to"),
    Column("version", BigInteger, nullable=False, server_default=text("0"), comment="Moved when a webhook changes"),
    CheckConstraint("one", name="one"),
    comment="One row: how far the stream has been made into deliveries",
    info={"fillfactor": 10},
)
