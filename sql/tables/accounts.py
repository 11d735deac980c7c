"""Accounts, API keys, and their usage."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Identity,
    Integer,
    LargeBinary,
    Table,
    Text,
    text,
)

from sql.tables.base import NOW, Time, metadata

tiers = Table(
    "tiers",
    metadata,
    Column("tier", Text, primary_key=True),
    Column("credits_month", BigInteger),
    Column("credits_burst", Integer),
    Column("max_keys", Integer),
    Column("max_webhooks", Integer),
    Column("max_connections", Integer),
    Column("webhook_messages_day", BigInteger, comment="Attempts to deliver, of all webhooks of an account"),
    Column(
        "unfiltered_webhooks",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether a webhook may receive all trades",
    ),
    comment="Null: custom, set per key",
)

accounts = Table(
    "accounts",
    metadata,
    Column("account_id", BigInteger, Identity(always=True), primary_key=True),
    Column("email", Text, nullable=False, unique=True, comment="Normalised; of a former account, a text that is none"),
    Column("app_name", Text, nullable=False),
    Column("use_case", Text),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("verified_at", Time, comment="When its owner proved to receive mail at the address"),
    Column("closed_at", Time, comment="When the operator revoked its last key; its address cannot register again"),
    Column("former_email", Text, comment="The address that it had until a new account got it"),
)

account_tokens = Table(
    "account_tokens",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True, comment="SHA-256; the token itself is in the mail only"),
    Column("account_id", BigInteger, ForeignKey("accounts.account_id"), nullable=False, index=True),
    Column("purpose", Text, nullable=False, comment="verify, recover"),
    Column("expires_at", Time, nullable=False),
    comment="Links that were mailed and not used yet",
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", Integer, Identity(always=True), primary_key=True),
    Column("account_id", BigInteger, ForeignKey("accounts.account_id"), nullable=False, index=True),
    Column(
        "key_hash",
        LargeBinary,
        nullable=False,
        unique=True,
        comment="SHA-256; the key itself is shown once and never stored",
    ),
    Column("prefix", Text, nullable=False, comment="For display"),
    Column("tier", Text, ForeignKey("tiers.tier"), nullable=False),
    Column("credits_month", BigInteger, comment="Overrides the tier's"),
    Column("credits_burst", Integer, comment="Overrides the tier's"),
    Column("max_connections", Integer, comment="Overrides the tier's"),
    Column("max_webhooks", Integer, comment="Overrides the tier's"),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("revoked_at", Time),
    Column("webhook_messages_day", BigInteger, comment="Overrides the tier's"),
)

credit_usage = Table(
    "credit_usage",
    metadata,
    Column("key_id", Integer, ForeignKey("api_keys.key_id"), primary_key=True),
    Column("month", Time, primary_key=True, comment="Its first instant, UTC"),
    Column("used", BigInteger, nullable=False, server_default=text("0"), comment="Those leased to a host included"),
    info={"fillfactor": 50},
)

credit_leases = Table(
    "credit_leases",
    metadata,
    Column("lease_id", BigInteger, primary_key=True, comment="Drawn at random by the host that spends it"),
    Column("key_id", Integer, ForeignKey("api_keys.key_id"), nullable=False, index=True),
    Column("month", Time, nullable=False, comment="Its first instant, UTC"),
    Column("granted", BigInteger, nullable=False, comment="Credits taken so far, spent or not; credit_usage has them"),
    Column("step", BigInteger, nullable=False, comment="Raised by each grant: an answer that got lost is told again"),
    comment="What hosts hold of the keys' credits; a row whose host has crashed is past use, and goes with its month",
)

registrations = Table(
    "registrations",
    metadata,
    Column(
        "address",
        Text,
        primary_key=True,
        comment="Where keys were asked for from: an IPv4 address, an IPv6 /64; or what is limited alike",
    ),
    Column("day", Time, nullable=False, index=True, comment="Its first instant, UTC"),
    Column("asked", Integer, nullable=False),
    comment="Kept for the day, so that one address cannot make any number of keys",
)
