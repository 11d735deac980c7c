"""Records that the operations of keys return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: F821, TC001, UP037 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from presage_client._field_types import Literal
from presage_client._record import Record


class Confirmation(Record, kw_only=True):
    """What a mailed link has done."""

    purpose: Literal["recover", "verify"]
    key: str | None
    """The new key, shown only once, if one was recovered."""
    message: str


class NewKey(Record, kw_only=True):
    """A new key, shown only once."""

    key: str
    app_name: str
    tier: str
    credits_month: int | None
    credits_burst: int | None
    message: str


class RecoveryRequested(Record, kw_only=True):
    """The same whether the address has an account or not."""

    message: str


class Rotation(Record, kw_only=True):
    """The key that replaces the request's key, shown only once."""

    key: str
    message: str
