"""`presage demo` and `presage up`: start everything, show its status, and stop it. Options: `cli/main.py`."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING

import msgspec

from cli.stack.control import Control
from cli.stack.display.figures import FigureReader, PipelineFigures
from cli.stack.display.first_served import FirstServed
from cli.stack.display.outcome import Outcome, problems, summary
from cli.stack.display.screen import Screen
from cli.stack.processes.program import StartError
from cli.stack.processes.signals import EndedBySignal, signals_raise
from cli.stack.processes.supervisor import Supervisor
from cli.stack.stack import Stack
from config.exchanges import DEFAULT
from config.hosts import ONE_MACHINE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cli.stack.plan import Plan


MINUTE_S = 60.0
START_RETRIES = 5  # of a service on one of several hosts, which may start while the database fails over: a minute or so


class FigureWatcher(threading.Thread):
    """Thread that reads the figures and writes the JSON each second, also during start-up and screen updates."""

    def __init__(self, stack: Stack, outcome: Outcome, file: Path | None) -> None:
        super().__init__(daemon=True, name="watch")
        self.stack = stack
        self.outcome = outcome
        self.file = file
        self.figures = PipelineFigures()
        self.served: dict[str, FirstServed] = {}
        self.reader: FigureReader | None = None
        self._stopping = threading.Event()
        self._updating = threading.Lock()

    def run(self) -> None:
        """Update once a second until stopped."""
        while True:
            began = time.monotonic()
            self.update()
            if self._stopping.wait(max(0.05, 1.0 - (time.monotonic() - began))):
                return

    def update(self, *, count_all: bool = False) -> None:
        """Read the figures now and save the outcome."""
        with self._updating:
            if self.reader is not None:
                self.figures = self.reader.read(count_all=count_all)
                self.outcome.take(self.figures)
            for exchange, served in self.served.items():
                of = self.outcome.of(exchange)
                of.time_to_first_market_s, of.time_to_first_price_s = (
                    _rounded(served.market_s),
                    _rounded(served.price_s),
                )
            if first := self.outcome.by_exchange.get(DEFAULT.name):
                self.outcome.time_to_first_market_s = first.time_to_first_market_s
                self.outcome.time_to_first_price_s = first.time_to_first_price_s
            self._record_past(count_all=count_all)
            if self.file is not None:
                self.outcome.save(self.file)
            self._save_processes()

    def _record_past(self, *, count_all: bool) -> None:
        """Record the back-fill's figures a minute after the first price."""
        served = self.served.get(DEFAULT.name)
        if served is None or served.price_s is None or self.outcome.past_at_60_s is not None or count_all:
            return
        if self.figures.past is None:  # there is no back-fill
            return
        if self.reader is not None and time.monotonic() - served.began - served.price_s >= MINUTE_S:
            self.figures = self.reader.read(count_all=True)
            self.outcome.take(self.figures)
            self.outcome.past_at_60_s = self.figures.past

    def stop(self) -> None:
        """Stop the thread and close its connections."""
        self._stopping.set()
        if self.is_alive():
            self.join(timeout=30)
        for served in self.served.values():
            served.stop()
        if self.reader is not None:
            self.reader.close()

    def _save_processes(self) -> None:
        """Write running.json, which lists the running processes."""
        from sql.database import without_password

        supervisor = self.stack.supervisor
        database = without_password(self.stack.database.url)
        running = {
            name: {"pid": watched.service.pid, "state": watched.state, "restarts": watched.restarts}
            for name, watched in list(supervisor.watched.items())
        }
        running_file = {"instance": supervisor.instance, "database_url": database, "services": running}
        file = self.stack.plan.data_dir / "running.json"
        temporary = file.with_name(".running.json.new")
        temporary.write_bytes(msgspec.json.encode(running_file))
        temporary.replace(file)


def run(
    plan: Plan,
    *,
    seconds: float | None = None,
    json_file: Path | None = None,
    fresh: bool = False,
    with_key: bool = True,
) -> int:
    """Run the plan to its end; return the exit status."""
    plan.data_dir.mkdir(parents=True, exist_ok=True)
    try:
        with locked(plan.data_dir), signals_raise():
            if fresh:
                erase(plan)
            return _run(plan, seconds, json_file, fresh=fresh, with_key=with_key)
    except EndedBySignal as ended:
        # Without --for, a signal is the normal end.
        return 0 if seconds is None else 128 + ended.number
    except Exception as error:
        if not expected(error):
            raise
        print(f"presage: {error}", file=sys.stderr)
        print(f"presage: the logs are in {plan.logs}", file=sys.stderr)
        return 1


def _run(plan: Plan, seconds: float | None, json_file: Path | None, *, fresh: bool, with_key: bool) -> int:
    found: list[str] = []
    screen = Screen(plan)
    supervisor = Supervisor(screen.say, start_retries=0 if plan.roles == ONE_MACHINE else START_RETRIES)
    outcome = Outcome(source=plan.label_of_rows, urls=plan.urls())
    stack = Stack(plan, supervisor, screen.say, fresh=fresh)
    watch = FigureWatcher(stack, outcome, json_file)
    screen.say(f"Presage: {plan.label}")
    with supervisor, screen:
        watch.start()
        try:
            stack.start(on_tables=lambda: _on_tables(stack, watch, with_key=with_key))
            outcome.tape = stack.tape
            screen.say("up: " + ", ".join(f"{name} {took:.1f} s" for name, took in stack.steps.items()))
            screen.print_examples(outcome)
            with Control(supervisor, plan.data_dir):
                found = _supervise(stack, watch, screen, seconds)
        finally:
            if stack.feeds is not None:
                stack.feeds.stop()
            watch.stop()
            screen.close()
            screen.say("stopping")
    for line in summary(outcome, found):
        print(line)
    return 1 if found and seconds is not None else 0


def _on_tables(stack: Stack, watch: FigureWatcher, *, with_key: bool) -> None:
    """Start reading figures, create the key, and start polling the API."""
    from cli.api_keys import ready_key

    if stack.plan.migrates:  # others cannot read everything
        watch.reader = FigureReader(stack.database.url)
    if with_key:
        watch.outcome.api_key = ready_key(stack.database.url, stack.plan.key_file)
        api = stack.plan.urls()["api"]
        watch.served = {  # in one step: another thread reads it
            exchange: FirstServed(str(api), lambda: watch.outcome.api_key, stack.installed_at, exchange)
            for exchange in stack.plan.exchanges
        }
        for served in watch.served.values():
            served.start()


def _supervise(stack: Stack, watch: FigureWatcher, screen: Screen, seconds: float | None) -> list[str]:
    """Supervise until the time is over or a signal arrives; return the problems at the end."""
    until = None if seconds is None else time.monotonic() + seconds
    with contextlib.suppress(EndedBySignal) if seconds is None else contextlib.nullcontext():
        while until is None or time.monotonic() < until:
            if stack.feeds is not None:
                stack.feeds.apply()
            stack.supervisor.watch()
            screen.show(watch.figures, watch.outcome, stack.supervisor.watched)
            time.sleep(0.25)
    watch.update(count_all=True)
    down = [name for name, watched in stack.supervisor.watched.items() if watched.state != "up"]
    if not stack.plan.migrates:  # what the pipeline does is another host's
        return [f"{name} is down" for name in down]
    return problems(watch.outcome, down, watch.figures.error, served=bool(watch.served))


def expected(error: Exception) -> bool:
    """Return whether the user can act on the error by its text alone, without a traceback."""
    import psycopg

    from sql.embedded import EmbeddedError

    return isinstance(error, (StartError, EmbeddedError, psycopg.Error))


@contextlib.contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Lock the data folder, so that two runs do not use the same files."""
    with (data_dir / "running.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartError(f"another instance uses {data_dir}; stop it, or set PRESAGE_DATA_DIR") from None
        yield


def erase(plan: Plan) -> None:
    """Delete this source's files of earlier runs; its database is dropped once the server runs."""
    if plan.database_url is not None:
        raise StartError("--fresh does not erase the database in DATABASE_URL: drop it yourself, or use another")
    for kept in (plan.dagster_home, plan.logs):
        shutil.rmtree(kept, ignore_errors=True)
    plan.key_file.unlink(missing_ok=True)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
