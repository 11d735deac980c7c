"""Waiting for a condition, with a timeout longer than any machine needs: it only delays failures."""

from __future__ import annotations

import time

PATIENCE_S = 180.0


def until(condition, within_s=PATIENCE_S):
    """Return the condition's result once it is truthy."""
    began = time.monotonic()
    while not (found := condition()):
        assert time.monotonic() - began < within_s, f"not within {within_s} s"
        time.sleep(0.02)
    return found
