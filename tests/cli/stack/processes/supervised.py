"""Runs a supervisor with test programs, for the tests of cli.stack.processes: `supervised.py DIR SHAPE`."""

import sys
import time
from pathlib import Path

from cli.stack.processes.program import Program, StartError
from cli.stack.processes.signals import EndedBySignal, signals_raise
from cli.stack.processes.supervisor import Supervisor

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
below = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"]
subprocess.Popen(below)
subprocess.Popen(below, start_new_session=True)
lone = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'], start_new_session=True)"
subprocess.run([sys.executable, "-c", "import subprocess, sys; " + lone])
open(sys.argv[1], "w").close()
time.sleep(300)
"""
PLAIN = "import time; time.sleep(300)"
FAILING_TWICE = """
import sys, time
with open(sys.argv[1] + ".starts", "a+") as starts:
    starts.write("started\\n")
    starts.seek(0)
    if len(starts.readlines()) < 3:
        raise SystemExit("no primary")
time.sleep(300)
"""
FAILING = "import time; time.sleep(0.3); print('no such table: weather'); raise SystemExit(3)"


def main(directory: Path, shape: str) -> int:
    def program(name: str, code: str, **more: object) -> Program:
        ready = directory / f"{name}.ready"
        return Program(
            name,
            [sys.executable, "-c", code, str(ready)],
            directory / f"{name}.log",
            grace_s=0.5,
            **more,  # type: ignore[arg-type]
        )

    try:
        retries = 2 if shape.startswith("patient") else 0
        with signals_raise(), Supervisor(lambda line: print(line, flush=True), start_retries=retries) as supervisor:
            print("instance", supervisor.instance, flush=True)
            ready = directory / "stubborn.ready"
            supervisor.start(program("stubborn", STUBBORN, is_ready=ready.exists), program("plain", PLAIN, tier=1))
            supervisor.wait("stubborn", "plain")
            if shape == "patient":
                starts = directory / "twice.ready.starts"

                def is_ready() -> bool:
                    return starts.exists() and starts.read_text().count("\n") == 3

                supervisor.start(program("twice", FAILING_TWICE, is_ready=is_ready))
                supervisor.wait("twice")
            if shape in {"failing", "patient-failing"}:
                supervisor.start(program("failing", FAILING, is_ready=lambda: False))
                supervisor.wait("failing")
            if shape == "slow":
                supervisor.start(program("slow", PLAIN, is_ready=lambda: False, ready_within_s=0.5))
                supervisor.wait("slow")
            print("up", flush=True)
            while True:
                supervisor.watch()
                pids = " ".join(f"{name}={watched.service.pid}" for name, watched in supervisor.watched.items())
                (directory / "pids.new").write_text(pids)
                (directory / "pids.new").replace(directory / "pids")  # atomic for readers
                time.sleep(0.05)
    except StartError as error:
        print(error, flush=True)
        return 1
    except EndedBySignal as ended:
        print("ended by", ended, flush=True)
        return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
