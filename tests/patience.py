"""Waiting for what others do: by condition, and longer than any machine needs, as a failure is told soon enough."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0


def until(condition: Callable[[], object], within_s: float = PATIENCE_S) -> float:
    """Return once it holds, with how long that took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_s
        time.sleep(0.02)
    return time.monotonic() - began
