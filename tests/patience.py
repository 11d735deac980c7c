"""Waiting for a condition, with a timeout longer than any machine needs: it only delays failures."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 180.0
T = TypeVar("T")


def until(condition: Callable[[], T | None], within_s: float = PATIENCE_S) -> T:
    """Return the condition's result once it is truthy."""
    began = time.monotonic()
    while not (found := condition()):
        assert time.monotonic() - began < within_s, f"not within {within_s} s"
        time.sleep(0.02)
    return found
