"""A jump of the clock between collection and the first test, as where the tests take long."""

from __future__ import annotations

import ctypes
import os
import time

from orchestration.ingest import clock

BEGAN = time.monotonic(), time.time()
LATE_S = "PRESAGE_CLOCK_LATE_S"
OFFSET_S = "PRESAGE_CLOCK_OFFSET_S"


def jump(seconds: int) -> None:
    """Advance the clock of this process, and of the programs that it starts from now on; `clock.c` must be loaded."""
    os.environ[OFFSET_S] = str(int(os.environ[OFFSET_S]) + seconds)
    ctypes.CDLL(None).reread_offset()
    clock._BEGAN_S += seconds  # what it added to CLOCK_MONOTONIC, which does not jump


def jumped() -> float:
    """Return by how many seconds the clock of this process has jumped since it began."""
    return time.time() - BEGAN[1] - (time.monotonic() - BEGAN[0])
