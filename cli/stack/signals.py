"""What SIGINT, SIGTERM and SIGHUP do to a supervisor: they end it in order."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Signals that would cut the cleaning up short wait until it is done; it never takes long."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.signal(number, signal.SIG_IGN) for number in ENDING]
    try:
        yield
    finally:
        for number, handler in zip(ENDING, before, strict=True):
            signal.signal(number, handler)


class Ended(BaseException):
    """A signal asked us to end. Not an Exception, so that no handler on the way takes it for a failure."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def ends_by_signal() -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into Ended, raised where the main thread is."""

    def end(number: int, _frame: object) -> None:
        raise Ended(number)

    before = [signal.signal(number, end) for number in ENDING]
    try:
        yield
    finally:
        for number, handler in zip(ENDING, before, strict=True):
            signal.signal(number, handler)
