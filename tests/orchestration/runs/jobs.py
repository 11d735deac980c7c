"""Jobs whose runs a host executes in the tests; each has a file that says what it did."""

import os
import signal
import time
from pathlib import Path

import dagster as dg


@dg.op(config_schema={"file": str})
def write(context):
    Path(context.op_config["file"]).write_text("done")


@dg.op(config_schema={"file": str})
def wait(context):
    """Wait until interrupted."""
    Path(context.op_config["file"]).write_text(str(os.getpid()))
    time.sleep(600)


@dg.op(config_schema={"file": str})
def clean_up(context):
    """Wait until interrupted, then until there is a second file."""
    file = Path(context.op_config["file"])
    file.write_text(str(os.getpid()))
    try:
        time.sleep(600)
    finally:
        file.write_text("cleans up")
        began = time.monotonic()
        while not file.with_suffix(".end").exists() and time.monotonic() - began < 60:
            time.sleep(0.05)
        file.write_text("cleaned up")


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
