"""Activity of a socket: when it last sent something, and its usual rate."""

import math

MEMORY_S = 60.0  # window of the usual rate's average
MIN_RATE = 0.1  # that a quiet socket counts with


class Pulse:
    """Time of the last message, and the usual message rate."""

    def __init__(self, now: float) -> None:
        self.received_at = self.checked_at = now
        self.rate = 0.0  # messages a second
        self._counted_at = now
        self._count = 0

    def beat(self, now: float, messages: int) -> None:
        """Count pushed messages; the initial books of a connection are not counted."""
        self.received_at = now
        self._count += messages

    def begin(self, now: float) -> None:
        """Reset for a new connection; the usual rate is kept."""
        self.received_at = self.checked_at = self._counted_at = now
        self._count = 0

    def settle(self, now: float) -> None:
        """Update the average rate; called about once a second."""
        passed = now - self._counted_at
        if passed > 0:
            self.rate += (self._count / passed - self.rate) * (1 - math.exp(-passed / MEMORY_S))
            self._counted_at, self._count = now, 0

    def silent_s(self, now: float) -> float:
        """Return how long nothing was received."""
        return now - self.received_at

    def expected(self, now: float) -> float:
        """Return how many messages usually come in the time since it was heard or checked."""
        return (now - max(self.received_at, self.checked_at)) * max(self.rate, MIN_RATE)

    def doubtful(self, now: float, limit_s: float) -> bool:
        """Return whether it has been silent for `limit_s`, and was not checked meanwhile."""
        return now - max(self.received_at, self.checked_at) >= limit_s
