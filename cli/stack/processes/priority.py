"""Processor priority of programs that run in sessions of their own."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

ATTEMPTS = 20
PAUSE_S = 0.1  # the kernel takes one change in this time from all users together, but for root


def lower(pid: int, niceness: int) -> None:
    """Add to the niceness of a process that leads its session, and of all that it will start.

    Linux may share processor time among sessions first, each with a niceness of its own (autogroup, sched(7)): that of
    a process then counts only beside others of its session.
    """
    with contextlib.suppress(ProcessLookupError):
        niceness = min(os.getpriority(os.PRIO_PROCESS, pid) + niceness, 19)
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
    for _ in range(ATTEMPTS):
        try:
            Path(f"/proc/{pid}/autogroup").write_text(str(niceness))
        except BlockingIOError:
            time.sleep(PAUSE_S)
        except OSError:  # it has ended, or its system has no such groups
            return
        else:
            return
