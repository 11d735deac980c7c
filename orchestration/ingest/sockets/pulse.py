"""When a socket last sent something, and how often it usually does."""

import math

MEMORY_S = 60.0  # over which a socket's usual rate is averaged


class Pulse:
    """When a socket was last heard, and how often it usually is."""

    def __init__(self, now: float) -> None:
        self.heard_at = self.asked_at = now
        self.rate = 0.0  # messages a second
        self._counted_at = now
        self._count = 0

    def beat(self, now: float, messages: int) -> None:
        """Take note of messages that were pushed; the books that greet a new connection are not counted."""
        self.heard_at = now
        self._count += messages

    def begin(self, now: float) -> None:
        """Start over on a new connection; the usual rate is remembered."""
        self.heard_at = self.asked_at = self._counted_at = now
        self._count = 0

    def settle(self, now: float) -> None:
        """Average the rate; called about once a second."""
        passed = now - self._counted_at
        if passed > 0:
            self.rate += (self._count / passed - self.rate) * (1 - math.exp(-passed / MEMORY_S))
            self._counted_at, self._count = now, 0

    def silent_s(self, now: float) -> float:
        """Tell for how long nothing was heard."""
        return now - self.heard_at

    def doubtful(self, now: float, limit_s: float) -> bool:
        """Tell whether it has been silent for so long, and not been doubted meanwhile."""
        return now - max(self.heard_at, self.asked_at) >= limit_s
