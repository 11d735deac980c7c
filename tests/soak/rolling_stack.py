"""Runs the API and the site of `presage up` on a given database: `rolling_stack.py FOLDER DATABASE_URL API_PORT`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec

from cli.stack.control import Control
from cli.stack.plan import Plan
from cli.stack.plan_database import PlanDatabase
from cli.stack.ports import Ports
from cli.stack.processes.signals import EndedBySignal, signals_raise
from cli.stack.processes.supervisor import Supervisor
from cli.stack.programs import Programs
from config import settings


def say(line: str) -> None:
    print(line, flush=True)


def main(folder: Path, database_url: str, port: int) -> None:
    workers = settings.get().api_workers
    plan = Plan(source="exchange", ports=Ports.of(port), data_dir=folder, database_url=database_url, workers=workers)
    try:
        with signals_raise(), Supervisor(say) as supervisor:
            programs = Programs(plan, PlanDatabase(plan, say, database_url, database_url), say)
            supervisor.start(programs.api())
            supervisor.wait("api")
            supervisor.start(programs.site())
            supervisor.wait("site")
            (folder / "running.json").write_bytes(msgspec.json.encode({"database_url": database_url}))
            with Control(supervisor, folder):
                say("up")
                while True:
                    supervisor.watch()
                    time.sleep(0.1)
    except EndedBySignal:
        return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
