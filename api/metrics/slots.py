"""Maps endpoints and error codes to their counters in shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.errors import CATALOGUE
from api.metrics.counts import MAX_CODES, MAX_SLOTS

if TYPE_CHECKING:
    from collections.abc import Iterable

CODE_SLOT = {code: number for number, code in enumerate(CATALOGUE)}
assert len(CODE_SLOT) <= MAX_CODES


class EndpointSlots:
    """Slots of endpoints, in the order given: name, method and path of each. The last one is for unknown paths."""

    def __init__(self, endpoints: Iterable[tuple[str, str, str]]) -> None:
        listed = list(endpoints)
        self.names = [*(name for name, _, _ in listed), "none"]
        self.unknown = len(listed)
        self._slots: dict[tuple[str, str | None], int] = {
            (method, path): slot for slot, (_, method, path) in enumerate(listed)
        }
        self._slots |= {("HEAD", path): slot for (method, path), slot in self._slots.items() if method == "GET"}
        assert len(self.names) <= MAX_SLOTS

    def of(self, method: str, path: str | None) -> int:
        """Return the slot of a method and a route template."""
        return self._slots.get((method, path), self.unknown)
