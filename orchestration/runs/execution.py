"""One run, in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading

from dagster import DagsterInstance
from dagster._cli.api import _execute_run_command_body
from dagster._utils.interrupts import capture_interrupts

from orchestration import run_priority


def execute(run_id: str) -> None:
    """Execute a run and exit; its status says how it ended. SIGTERM ends it after its step's clean-up."""
    threading.Thread(target=_end_with_host, daemon=True, name="host").start()
    with capture_interrupts(), DagsterInstance.get() as instance:
        if run := instance.get_run_by_id(run_id):
            run_priority.give_way(run)
        sys.exit(_execute_run_command_body(run_id, instance, lambda _: None, set_exit_code_on_failure=True))


def _end_with_host() -> None:
    """Kill this process when the one that executes this host's runs is gone: no other would learn how the run ends."""
    if host := multiprocessing.parent_process():
        host.join()
        os.kill(os.getpid(), signal.SIGKILL)
