"""Jobs whose runs a host executes in the tests; each has a file that says what it did."""

import os
import signal
import time
from pathlib import Path

import dagster as dg


@dg.op(config_schema={"file": str})
def write(context):
    Path(context.op_config["file"]).write_text("done")


def _wait(context, clean_up_s):
    """Wait until interrupted, then clean up for a while."""
    file = Path(context.op_config["file"])
    file.write_text(str(os.getpid()))
    try:
        time.sleep(600)
    finally:
        time.sleep(clean_up_s)
        file.write_text("cleaned up")


@dg.op(config_schema={"file": str})
def wait(context):
    _wait(context, 0.0)


@dg.op(config_schema={"file": str})
def clean_up(context):
    _wait(context, 5.0)  # longer than a host's pause between two looks


@dg.op(config_schema={"file": str})
def die(_context):
    os.kill(os.getpid(), signal.SIGKILL)


@dg.job(executor_def=dg.in_process_executor, tags={"dagster/priority": "10"})
def writing():
    write()


@dg.job(executor_def=dg.in_process_executor, tags={"dagster/priority": "10"})
def waiting():
    wait()


@dg.job(executor_def=dg.in_process_executor, tags={"dagster/priority": "10"})
def cleaning():
    clean_up()


@dg.job(executor_def=dg.in_process_executor, tags={"dagster/priority": "10"})
def dying():
    die()
