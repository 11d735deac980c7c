"""Is a socket that says nothing quiet or dead? It may freeze without closing, and answer every PING meanwhile."""

import math

MEMORY_S = 60.0  # over which a socket's usual rate is averaged
SURE = 5.0  # messages that should have come by its usual rate: then silence is no chance
WHOLE_S = 15.0  # silence of the whole feed: found by then
QUIET_S = 60.0  # silence of one socket that is often quiet, while others speak


class Pulse:
    """When a socket was last heard, and how often it usually is."""

    def __init__(self, now: float) -> None:
        self.heard_at = now
        self.rate = 0.0  # messages a second
        self.patience = 1.0  # grows while reconnecting shows that nothing had been missed
        self._counted_at = now
        self._count = 0

    def beat(self, now: float, messages: int) -> None:
        """Take note of messages that were pushed."""
        self.heard_at = now
        self._count += messages
        self.patience = 1.0

    def begin(self, now: float) -> None:
        """Start over on a new connection; the usual rate is remembered."""
        self.heard_at = self._counted_at = now
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

    def dead(self, now: float, limit_s: float, others_silent_s: float) -> bool:
        """Judge: by the socket's own usual rate, by the other sockets, and in the end by time alone."""
        silent = self.silent_s(now)
        if silent < limit_s:
            return False
        if self.rate * silent >= SURE:
            return True
        # Too quiet to be sure. A new connection greets with fresh books, which show whether anything was missed.
        whole = others_silent_s >= limit_s
        within = min(limit_s * 1.2, WHOLE_S) if whole else max(QUIET_S, limit_s)
        return silent >= within * self.patience

    def was_quiet(self) -> None:
        """Nothing had been missed: be more patient next time."""
        self.patience = min(self.patience * 2, 5.0)
