"""A short-lived response cache, one per process; concurrent identical requests share one database query."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from cachetools import TLRUCache

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MAX_BYTES = 64 << 20

Response = TypeVar("Response", bound="tuple[bytes, *tuple[Any, ...]]")


class CacheEntry(NamedTuple):
    """A cached response, its body first, and how long it is valid."""

    response: tuple[bytes, *tuple[Any, ...]]
    seconds: float


class Cache:
    """Responses by request, with single flight: one caller loads, the others wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries: TLRUCache[Hashable, CacheEntry, float] = TLRUCache(MAX_BYTES, _expiry, clock, _size)
        self._loading: dict[Hashable, threading.Event] = {}

    def get(self, request: Hashable, seconds: float, load: Callable[..., Response], *about: Any) -> Response:
        """Return the body, and what `load` returns with it; call `load(*about)` unless it is cached or being loaded."""
        while True:
            try:
                return cast("Response", self._entries[request].response)
            except KeyError:
                pass
            loading = self._loading.get(request)
            if loading is None:
                break
            loading.wait(timeout=10)  # the loader is bound by the statement timeout; if it fails, a waiter retries
        self._loading[request] = done = threading.Event()
        try:
            response = load(*about)
            with contextlib.suppress(ValueError):  # larger than the whole cache
                self._entries[request] = CacheEntry(response, seconds)
            return response
        finally:
            del self._loading[request]
            done.set()


def _expiry(_request: Hashable, entry: CacheEntry, now: float) -> float:
    return now + entry.seconds


def _size(entry: CacheEntry) -> int:
    return len(entry.response[0])
