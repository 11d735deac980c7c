"""What `presage doctor` looks at: each look gives findings, and none of them changes anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """One thing looked at, and what to do about it."""

    topic: str
    status: Status
    found: str
    remedy: str = ""
