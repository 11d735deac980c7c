"""`presage demo` and `presage up`: everything started, shown while it runs, and ended."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING

import msgspec

from cli.stack.figures import Figures, Reader
from cli.stack.first_served import FirstServed
from cli.stack.outcome import Outcome, problems, summary
from cli.stack.processes import StartError, Supervisor
from cli.stack.screen import Screen
from cli.stack.signals import Ended, ends_by_signal
from cli.stack.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cli.stack.plan import Plan


MINUTE_S = 60.0


class Watch(threading.Thread):
    """Reads the figures and writes the JSON each second, also while things start and while the screen is drawn."""

    def __init__(self, stack: Stack, outcome: Outcome, file: Path | None) -> None:
        super().__init__(daemon=True, name="watch")
        self.stack = stack
        self.outcome = outcome
        self.file = file
        self.figures = Figures()
        self.served: FirstServed | None = None
        self.reader: Reader | None = None
        self._enough = threading.Event()
        self._turn = threading.Lock()

    def run(self) -> None:
        """Look once a second."""
        while True:
            began = time.monotonic()
            self.look()
            if self._enough.wait(max(0.05, 1.0 - (time.monotonic() - began))):
                return

    def look(self, *, all_of_them: bool = False) -> None:
        """Look now, and write down what there is."""
        with self._turn:
            if self.reader is not None:
                self.figures = self.reader.read(all_of_them=all_of_them)
                self.outcome.take(self.figures)
            if self.served is not None:
                self.outcome.time_to_first_market_s = _rounded(self.served.market_s)
                self.outcome.time_to_first_price_s = _rounded(self.served.price_s)
                self._note_past(all_of_them=all_of_them)
            if self.file is not None:
                self.outcome.save(self.file)
            self._note_processes()

    def _note_past(self, *, all_of_them: bool) -> None:
        """Keep what there was of the past a minute after the first price."""
        served = self.served
        if served is None or served.price_s is None or self.outcome.past_at_60_s is not None or all_of_them:
            return
        if self.reader is not None and time.monotonic() - served.began - served.price_s >= MINUTE_S:
            self.figures = self.reader.read(all_of_them=True)
            self.outcome.take(self.figures)
            self.outcome.past_at_60_s = self.figures.past

    def stop(self) -> None:
        """Look no more."""
        self._enough.set()
        if self.is_alive():
            self.join(timeout=30)
        if self.served is not None:
            self.served.stop()
        if self.reader is not None:
            self.reader.close()

    def _note_processes(self) -> None:
        """Leave word of who runs, for whoever wants to look into it."""
        supervisor = self.stack.supervisor
        running = {
            name: {"pid": watched.service.pid, "state": watched.state, "restarts": watched.restarts}
            for name, watched in list(supervisor.watched.items())
        }
        told = {"instance": supervisor.instance, "database_url": self.stack.database_url, "services": running}
        file = self.stack.plan.data_dir / "running.json"
        temporary = file.with_name(".running.json.new")
        temporary.write_bytes(msgspec.json.encode(told))
        temporary.replace(file)


def run(
    plan: Plan,
    *,
    seconds: float | None = None,
    json_file: Path | None = None,
    fresh: bool = False,
    with_key: bool = True,
) -> int:
    """Run the plan to its end; the exit status."""
    plan.data_dir.mkdir(parents=True, exist_ok=True)
    try:
        with alone(plan.data_dir), ends_by_signal():
            if fresh:
                start_over(plan)
            return _run(plan, seconds, json_file, fresh=fresh, with_key=with_key)
    except Ended as ended:
        # Without --for, a signal is the way to end it.
        return 0 if seconds is None else 128 + ended.number
    except Exception as error:
        if not expected(error):
            raise
        print(f"presage: {error}", file=sys.stderr)
        print(f"presage: the logs are in {plan.logs}", file=sys.stderr)
        return 1


def _run(plan: Plan, seconds: float | None, json_file: Path | None, *, fresh: bool, with_key: bool) -> int:
    said: list[str] = []
    screen = Screen(plan)
    supervisor = Supervisor(screen.say)
    outcome = Outcome(source=plan.label_of_rows, urls=plan.urls())
    stack = Stack(plan, supervisor, screen.say, fresh=fresh)
    watch = Watch(stack, outcome, json_file)
    screen.say(f"Presage: {plan.label}")
    with supervisor, screen:
        watch.start()
        try:
            stack.start(on_tables=lambda: _tables_are_there(stack, watch, with_key=with_key))
            outcome.tape = stack.tape
            screen.say("up: " + ", ".join(f"{name} {took:.1f} s" for name, took in stack.steps.items()))
            screen.invite(outcome)
            said = _keep_up(stack, watch, screen, seconds)
        finally:
            watch.stop()
            screen.close()
            screen.say("stopping")
    for line in summary(outcome, said):
        print(line)
    return 1 if said and seconds is not None else 0


def _tables_are_there(stack: Stack, watch: Watch, *, with_key: bool) -> None:
    """Begin to read figures, make the key, and ask the API from now on until it serves."""
    from cli.api_keys import ready_key

    watch.reader = Reader(stack.database_url)
    if with_key:
        watch.outcome.api_key = ready_key(stack.database_url, stack.plan.key_file)
        api = stack.plan.urls()["api"]
        watch.served = FirstServed(str(api), lambda: watch.outcome.api_key, stack.installed_at)
        watch.served.start()


def _keep_up(stack: Stack, watch: Watch, screen: Screen, seconds: float | None) -> list[str]:
    """Look after everything until the time is over or a signal comes; what is wrong at the end."""
    until = None if seconds is None else time.monotonic() + seconds
    with contextlib.suppress(Ended) if seconds is None else contextlib.nullcontext():
        while until is None or time.monotonic() < until:
            stack.supervisor.watch()
            screen.show(watch.figures, watch.outcome, stack.supervisor.watched)
            time.sleep(0.25)
    watch.look(all_of_them=True)
    down = [name for name, watched in stack.supervisor.watched.items() if watched.state != "up"]
    return problems(watch.outcome, down, watch.figures.error, served=watch.served is not None)


def expected(error: Exception) -> bool:
    """Say whether the error is one that the user can act on; its text says how, and a traceback would hide it."""
    import psycopg

    from sql.embedded import EmbeddedError

    return isinstance(error, (StartError, EmbeddedError, psycopg.Error))


@contextlib.contextmanager
def alone(data_dir: Path) -> Iterator[None]:
    """Hold the data folder: two at once would quarrel over its files."""
    with (data_dir / "running.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartError(f"another one runs over {data_dir}; end it, or set PRESAGE_DATA_DIR") from None
        yield


def start_over(plan: Plan) -> None:
    """Forget what earlier runs kept of this source beside its database, which is dropped once the server runs."""
    if plan.database_url is not None:
        raise StartError("--fresh erases no database that DATABASE_URL names: drop it yourself, or name another")
    for kept in (plan.dagster_home, plan.logs):
        shutil.rmtree(kept, ignore_errors=True)
    plan.key_file.unlink(missing_ok=True)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
