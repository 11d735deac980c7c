"""Figures of a run: totals, and changes since the last report."""

from time import time
from typing import Any

from orchestration.ingest.committer import Committer
from orchestration.ingest.lag import Lag
from orchestration.ingest.receiver import Receiver
from orchestration.ingest.storage.backlog import Backlog

BEHIND_MS, MIN_ROWS = 5_000, 20  # median lag of so many rows of an interval from which on a leader is said to be behind
COUNTED = ("messages", "rows", "reconnects", "reanchored")


class LiveFigures:
    """Collects figures from the parts of a run."""

    def __init__(self, receiver: Receiver, backlog: Backlog, committer: Committer) -> None:
        self._receiver = receiver
        self._backlog = backlog
        self._committer = committer
        self._stored: dict[str, int] = dict.fromkeys(COUNTED, 0)
        self._observed: dict[str, int] = dict.fromkeys(COUNTED, 0)
        self._lag = Lag()  # since the last observation
        self.lag_p99_ms: int | None = None  # of the last row of `feed_stats`
        self._behind: dict[str, Any] = {}

    def totals(self) -> dict[str, Any]:
        """Return totals since the run began, and its current state."""
        counts, total = self._receiver.normalizer.counts, self._committer.total
        return {
            "role": self._committer.role,
            "messages": counts.messages,
            "rows": total.rows,
            "trades": total.trades,
            "events": total.events,
            "quotes": total.quotes,
            "told": total.published,
            "repeats": counts.repeats + total.repeats,
            "mismatches": counts.mismatches,
            "reanchored": counts.reanchored,
            "reconnects": self._receiver.resync.reconnects,
            "refused": counts.refused + self._committer.refused,
            "unknown_tokens": counts.unknown_tokens,
            "unknown_kinds": counts.unknown_kinds,
            "database_faults": self._committer.faults,
            **self.standing(),
        }

    def standing(self) -> dict[str, int]:
        """Return how much is followed, and how much waits to be written."""
        return {
            "tokens": len(self._receiver.normalizer.states),
            "sockets": sum(listener.open for listener in self._receiver.subscriptions.listeners),
            "backlog_events": self._backlog.events,
            "backlog_kb": (self._backlog.bytes + self._backlog.kept_bytes) // 1000,
        }

    def stats(self) -> dict[str, Any]:
        """Return a row of `feed_stats`: changes since the last one."""
        lag, self._committer.lag = self._committer.lag, Lag()
        self._lag.merge(lag)
        lag_p50_ms, self.lag_p99_ms = lag.quantile(0.5), lag.quantile(0.99)
        self._note_behind(lag_p50_ms, len(lag))
        return {
            **self._since(self._stored),
            "lag_counts": lag.trimmed(),
            "lag_p50_ms": lag_p50_ms,
            "lag_p99_ms": self.lag_p99_ms,
            "lag_max_ms": lag.max_ms if len(lag) else None,
        }

    def observation(self) -> dict[str, Any]:
        """Return totals and changes since the last observation, for display."""
        lag, self._lag = self._lag, Lag()
        lag.merge(self._committer.lag)
        since = self._since(self._observed)
        return {
            **self.totals(),
            **{f"{name}_since": count for name, count in since.items()},
            "lag_p50_ms": lag.quantile(0.5),
            "lag_p99_ms": lag.quantile(0.99),
            "lag_max_ms": lag.max_ms if len(lag) else None,
        }

    def obstacle(self) -> dict[str, Any]:
        """Return by how much and at which rate this run, the leader, is behind, and since when; on standby nothing."""
        if not self._committer.leading:
            self._behind = {}
        return self._behind

    def _note_behind(self, lag_p50_ms: int | None, rows: int) -> None:
        """Note whether the run is behind; an interval without a commit changes nothing while something waits."""
        if lag_p50_ms is None and self._backlog.events:
            return
        if lag_p50_ms is None or lag_p50_ms < BEHIND_MS or rows < MIN_ROWS:
            self._behind = {}
            return
        behind_s = round(lag_p50_ms / 1000)
        reason = f"{behind_s} s behind, at {self._receiver.rate():,.0f} messages a second"
        self._behind = {"reason": reason, "since": self._behind.get("since", int(time())), "behind_s": behind_s}

    def _since(self, before: dict[str, int]) -> dict[str, int]:
        totals = self.totals()
        grown = {name: totals[name] - before[name] for name in COUNTED}
        before.update({name: totals[name] for name in COUNTED})
        return grown
