"""Records that the operations of signals return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: TC001 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from presage_client import _record
from presage_client._field_types import Records
from presage_client._record import Record
from presage_client.records.common import Signal


class TopSignals(Record, kw_only=True):
    """Signals of the last 24 hours, highest score first."""

    data: Records[Signal]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Signal)
