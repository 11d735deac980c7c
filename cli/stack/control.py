"""The socket in the data folder through which `presage restart` asks a running `presage up` to replace a process."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from typing import TYPE_CHECKING, Any, Self

from cli.stack.processes.supervisor import ReplaceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from cli.stack.processes.supervisor import Supervisor

NAME = "control.sock"
MAX_REQUEST = 1000
REQUEST_S = 5.0  # for a request to arrive


class NotRunningError(Exception):
    """Nobody listens: nothing runs on this data folder."""


@contextlib.contextmanager
def _path(folder: Path, name: str = NAME) -> Iterator[str]:
    """Yield the socket's path, short however long the folder's is: the kernel allows 107 characters."""
    opened = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{opened}/{name}"
    finally:
        os.close(opened)


class Control(threading.Thread):
    """Replaces processes on request, one at a time. Only this user may ask."""

    def __init__(self, supervisor: Supervisor, folder: Path) -> None:
        super().__init__(daemon=True, name="control")
        self._supervisor, self._folder = supervisor, folder
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def __enter__(self) -> Self:
        (self._folder / NAME).unlink(missing_ok=True)  # of a run that was killed
        os.fchmod(self._listener.fileno(), 0o600)  # the file's mode, from the moment it exists
        made = self._folder / f"{NAME}.new"  # renamed once it listens: whoever finds the file can connect
        made.unlink(missing_ok=True)
        with _path(self._folder, made.name) as path:
            self._listener.bind(path)
        self._listener.listen()
        made.rename(self._folder / NAME)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # ends `accept`; a replacement under way ends with the supervisor
        self._listener.close()
        (self._folder / NAME).unlink(missing_ok=True)

    def run(self) -> None:
        """Answer one request after the other until the socket is closed."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # a broken request
                connection.settimeout(REQUEST_S)
                with connection.makefile("rb") as lines:
                    name = json.loads(lines.readline(MAX_REQUEST))["restart"]
                answer = json.dumps(self._restart(str(name))).encode()
                connection.sendall(answer + b"\n")

    def _restart(self, name: str) -> dict[str, Any]:
        try:
            return {"done": True, "said": self._supervisor.replace(name)}
        except Exception as error:  # noqa: BLE001 - told to who asked; the supervisor goes on
            said = str(error) if isinstance(error, ReplaceError) else f"{type(error).__name__}: {error}"
            return {"done": False, "said": said}


def restart(folder: Path, name: str) -> tuple[bool, str]:
    """Ask whoever runs on this data folder to replace a process; wait, and return whether it did, and what it said."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        try:
            with _path(folder) as path:
                asking.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            raise NotRunningError(f"nothing runs on {folder}, or it is still starting") from None
        asking.sendall(json.dumps({"restart": name}).encode() + b"\n")
        with asking.makefile("rb") as lines:
            answer = lines.readline()
    if not answer:
        raise NotRunningError("it ended before it had answered")
    said = json.loads(answer)
    return bool(said["done"]), str(said["said"])
