"""Records operators' commands in the audit trail: who ran what, on what, with what result.

Every command that opens the database is recorded, except those that only read. Commands that change something in one
transaction record themselves in it, by `record`; all others when they start and when they end.
"""

from __future__ import annotations

import functools
import logging
import os
import pwd
import socket
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

    from sql.audit import Entry

READ_ONLY = frozenset({"audit", "get", "key list", "equivalents show"})
IN_TRANSACTION = frozenset(
    {
        *("key create", "key revoke", "key allow", "key replace", "key tier", "key quota"),
        *("set", "analyst add", "analyst remove", "rotate database-password"),
        *("equivalents overrule", "equivalents restore"),
    }
)
IN_USE = frozenset(
    {"restore"}
)  # refuses a database that anybody is connected to, us included: its start is logged only
SHOWN = (  # arguments that an entry names; all others may be secrets, or name a person
    *("file", "revision", "down", "with_dagster", "replace", "since", "until", "speed", "new_key", "clear"),
    "revoke",
    *("topics", "day", "again", "name", "value", "tier"),
)
PRIVATE = ("key", "email")  # arguments of which a failed command's entry has a digest


@dataclass
class Operation:
    """A command that is running."""

    command: str
    arguments: dict[str, Any]
    recorded: list[Entry] = field(default_factory=list)

    def entry(self, result: str = "ok") -> Entry:
        """Return an entry of this command, without what it was done to."""
        from sql.audit import Entry

        return Entry(self.command.replace(" ", "."), result, operator=operator(), address=_address())

    def outcome(self, result: str) -> Entry:
        """Return an entry with the command's arguments."""
        from sql.audit import fingerprint

        entry = self.entry(result)
        given = {name: value for name, value in self.arguments.items() if value not in (None, False, [])}
        entry.detail = {name: str(given[name]) for name in SHOWN if name in given}
        entry.subject = next((fingerprint(str(given[name])) for name in PRIVATE if name in given), None)
        return entry


_running: ContextVar[Operation | None] = ContextVar("running", default=None)


def install(app: typer.Typer, path: tuple[str, ...] = ()) -> None:
    """Have each command of an application known while it runs."""
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.replace("_", "-")
        command.callback = _named(" ".join([*path, name]), command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            install(group.typer_instance, (*path, str(group.typer_instance.info.name)))


def _named(name: str, command: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(command)
    def run(*args: Any, **arguments: Any) -> Any:
        token = _running.set(Operation(name, arguments))
        try:
            return command(*args, **arguments)
        finally:
            _running.reset(token)

    return run


@contextmanager
def recording(url: str) -> Iterator[None]:
    """Record the running command in a database, unless it only reads."""
    operation = _running.get()
    if operation is None or operation.command in READ_ONLY:
        yield
        return
    if operation.command in IN_USE:
        _report(operation.outcome("started"))
    elif operation.command not in IN_TRANSACTION:
        _store(url, operation.outcome("started"))
    try:
        yield
    except BaseException as error:
        done = isinstance(error, typer.Exit) and error.exit_code == 0
        outcome = operation.outcome("ok" if done else "failed")
        if not done:
            outcome.detail["error"] = type(error).__name__  # its text may name a key or an email address
        _store(url, outcome)
        raise
    if operation.recorded:
        for entry in operation.recorded:
            _report(entry)
    else:
        _store(url, operation.outcome("ok"))


def record(
    conn: psycopg.Connection[Any],
    *,
    account_id: int | None = None,
    key_id: int | None = None,
    subject: str | None = None,
    **detail: Any,
) -> None:
    """Record the running command in the transaction of its change."""
    from sql import audit

    if (operation := _running.get()) is None or operation.command not in IN_TRANSACTION:
        return  # no command, but a program that uses its functions
    entry = operation.entry()
    entry.account_id, entry.key_id, entry.subject, entry.detail = account_id, key_id, subject, detail
    audit.add(conn, entry)
    operation.recorded.append(entry)


def operator() -> str:
    """Return who runs this process, by the operating system: `alice@host`; with sudo, `root (alice)@host`."""
    user_id = os.geteuid()
    try:
        user = pwd.getpwuid(user_id).pw_name
    except KeyError:  # in a container
        user = str(user_id)
    behind = os.environ.get("SUDO_USER", "")
    return f"{user}{f' ({behind[:64]})' if behind else ''}@{socket.gethostname()}"


def _address() -> str | None:
    """Return where an operator's SSH session comes from."""
    try:
        return str(ip_address(os.environ.get("SSH_CONNECTION", "").partition(" ")[0]))
    except ValueError:
        return None


def _store(url: str, entry: Entry) -> None:
    import psycopg

    from sql import audit
    from sql.database import connect

    try:
        with connect(url, autocommit=True, name="presage audit") as conn:
            audit.add(conn, entry)
    except psycopg.Error as error:
        entry.detail = {**entry.detail, "not_stored": type(error).__name__}
    _report(entry)


def _report(entry: Entry) -> None:
    """Log an entry to stderr: a command has not set up logging."""
    from config import settings
    from config.logging import formatter
    from sql import audit

    if not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(formatter(settings.get().log_format))
        logging.getLogger().addHandler(handler)
    audit.log.setLevel(logging.INFO)
    audit.report(entry)
