"""Answers kept for a moment, in each process: many who ask the same at once are one question to the database."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MOST_BYTES = 64 << 20


class Kept(NamedTuple):
    """An answer, and until when it may be given again."""

    until: float
    body: bytes
    tag: str


class Cache:
    """Answers by question."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Kept] = {}
        self._asking: dict[Hashable, threading.Event] = {}
        self._bytes = 0

    def get(
        self, question: Hashable, seconds: float, ask: Callable[..., tuple[bytes, str]], *about: Any
    ) -> tuple[bytes, str]:
        """Give the answer to a question, asking (`about` what) only if nobody else has or does."""
        while True:
            kept = self._kept.get(question)
            if kept is not None and kept.until > time.monotonic():
                return kept.body, kept.tag
            asking = self._asking.get(question)
            if asking is None:
                break
            asking.wait(timeout=10)  # whoever asks is bound by the statement timeout; if it fails, one of us asks again
        self._asking[question] = done = threading.Event()
        try:
            body, tag = ask(*about)
            self._keep(question, Kept(time.monotonic() + seconds, body, tag))
            return body, tag
        finally:
            del self._asking[question]
            done.set()

    def _keep(self, question: Hashable, kept: Kept) -> None:
        self._drop(question)
        self._kept[question] = kept
        self._bytes += len(kept.body)
        while self._bytes > MOST_BYTES:  # the longest kept goes; a dict keeps its order
            self._drop(next(iter(self._kept)))

    def _drop(self, question: Any) -> None:
        if (old := self._kept.pop(question, None)) is not None:
            self._bytes -= len(old.body)
