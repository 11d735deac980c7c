"""Checks of `presage doctor`: each returns findings, and none changes anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """The result of one check, with a remedy if needed."""

    topic: str
    status: Status
    found: str
    remedy: str = ""
