"""Waiting for what others do: by condition, and longer than any machine needs, as a failure is told soon enough."""

from __future__ import annotations

import time

PATIENCE_S = 60.0


def until(condition, within_s=PATIENCE_S):
    """Return what it gives, once that is anything."""
    began = time.monotonic()
    while not (found := condition()):
        assert time.monotonic() - began < within_s, f"not within {within_s} s"
        time.sleep(0.02)
    return found
