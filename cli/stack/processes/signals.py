"""Handling of SIGINT, SIGTERM and SIGHUP: they stop the supervisor in order."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def signals_ignored() -> Iterator[None]:
    """Ignore termination signals during clean-up, which is always short."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.signal(number, signal.SIG_IGN) for number in ENDING]
    try:
        yield
    finally:
        for number, handler in zip(ENDING, before, strict=True):
            signal.signal(number, handler)


class EndedBySignal(BaseException):
    """A termination signal arrived. Not an Exception, so that no handler on the way treats it as a failure."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """Raise EndedBySignal in the main thread on SIGINT, SIGTERM and SIGHUP."""

    def end(number: int, _frame: object) -> None:
        raise EndedBySignal(number)

    before = [signal.signal(number, end) for number in ENDING]
    try:
        yield
    finally:
        for number, handler in zip(ENDING, before, strict=True):
            signal.signal(number, handler)
