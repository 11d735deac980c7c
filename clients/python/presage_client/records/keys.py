"""Records that the operations of keys return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from presage_client._record import Record


class NewKey(Record, kw_only=True):
    """A new key, shown only once."""

    key: str
    app_name: str
    tier: str
    credits_month: int | None
    credits_burst: int | None
    message: str


class Rotation(Record, kw_only=True):
    """The key that replaces the request's key, shown only once."""

    key: str
    message: str
