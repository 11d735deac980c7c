"""A short-lived response cache, one per process; concurrent identical requests share one database query."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MAX_BYTES = 64 << 20


class CacheEntry(NamedTuple):
    """A cached response and its expiry, by the monotonic clock."""

    until: float
    body: bytes
    tag: str


class Cache:
    """Responses by request, with single flight: one caller loads, the others wait."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, CacheEntry] = {}
        self._loading: dict[Hashable, threading.Event] = {}
        self._bytes = 0

    def get(
        self, request: Hashable, seconds: float, load: Callable[..., tuple[bytes, str]], *about: Any
    ) -> tuple[bytes, str]:
        """Return the body and tag for a request; call `ask(*about)` unless they are cached or being loaded."""
        while True:
            entry = self._entries.get(request)
            if entry is not None and entry.until > time.monotonic():
                return entry.body, entry.tag
            loading = self._loading.get(request)
            if loading is None:
                break
            loading.wait(timeout=10)  # the loader is bound by the statement timeout; if it fails, a waiter retries
        self._loading[request] = done = threading.Event()
        try:
            body, tag = load(*about)
            self._keep(request, CacheEntry(time.monotonic() + seconds, body, tag))
            return body, tag
        finally:
            del self._loading[request]
            done.set()

    def _keep(self, request: Hashable, entry: CacheEntry) -> None:
        self._drop(request)
        self._entries[request] = entry
        self._bytes += len(entry.body)
        while self._bytes > MAX_BYTES:  # drop the oldest entry; a dict keeps its order
            self._drop(next(iter(self._entries)))

    def _drop(self, request: Any) -> None:
        if (old := self._entries.pop(request, None)) is not None:
            self._bytes -= len(old.body)
