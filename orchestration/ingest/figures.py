"""What a run tells of itself: totals, and what happened since the last time."""

from typing import Any

from orchestration.ingest.committer import Recording
from orchestration.ingest.lag import Lag
from orchestration.ingest.normalizer import Tracker
from orchestration.ingest.resync import Anchoring
from orchestration.ingest.sockets.subscriptions import Following
from orchestration.ingest.storage.backlog import Backlog

COUNTED = ("messages", "rows", "reconnects", "reanchored")


class Figures:
    """Reads the parts of a run."""

    def __init__(
        self, tracker: Tracker, backlog: Backlog, *, following: Following, anchoring: Anchoring, recording: Recording
    ) -> None:
        self._tracker = tracker
        self._backlog = backlog
        self._following = following
        self._anchoring = anchoring
        self._recording = recording
        self._stored: dict[str, int] = dict.fromkeys(COUNTED, 0)
        self._observed: dict[str, int] = dict.fromkeys(COUNTED, 0)
        self._lag = Lag()  # since the last observation

    def totals(self) -> dict[str, Any]:
        """Give everything since the run began, and how it stands."""
        counts, total = self._tracker.counts, self._recording.total
        return {
            "role": self._recording.role,
            "messages": counts.messages,
            "rows": total.rows,
            "trades": total.trades,
            "events": total.events,
            "quotes": total.quotes,
            "told": total.told,
            "repeats": counts.repeats + total.repeats,
            "mismatches": counts.mismatches,
            "reanchored": counts.reanchored,
            "reconnects": self._anchoring.reconnects,
            "refused": counts.refused + self._recording.refused,
            "unknown_tokens": counts.unknown_tokens,
            "unknown_kinds": counts.unknown_kinds,
            "database_faults": self._recording.faults,
            **self.standing(),
        }

    def standing(self) -> dict[str, int]:
        """Give how much is followed, and what waits to be written."""
        return {
            "tokens": len(self._tracker.tracks),
            "sockets": sum(listener.open for listener in self._following.listeners),
            "backlog_events": self._backlog.events,
            "backlog_kb": self._backlog.bytes // 1000,
        }

    def stats(self) -> dict[str, Any]:
        """Give a row of `feed_stats`: what happened since the last one."""
        lag, self._recording.lag = self._recording.lag, Lag()
        self._lag.merge(lag)
        return {
            **self._since(self._stored),
            "lag_counts": lag.trimmed(),
            "lag_p50_ms": lag.quantile(0.5),
            "lag_p99_ms": lag.quantile(0.99),
            "lag_max_ms": lag.max_ms if len(lag) else None,
        }

    def observation(self) -> dict[str, Any]:
        """Give what happened since the last observation, for people to look at."""
        lag, self._lag = self._lag, Lag()
        lag.merge(self._recording.lag)
        since = self._since(self._observed)
        return {
            **self.totals(),
            **{f"{name}_since": count for name, count in since.items()},
            "lag_p50_ms": lag.quantile(0.5),
            "lag_p99_ms": lag.quantile(0.99),
            "lag_max_ms": lag.max_ms if len(lag) else None,
        }

    def _since(self, before: dict[str, int]) -> dict[str, int]:
        totals = self.totals()
        grown = {name: totals[name] - before[name] for name in COUNTED}
        before.update({name: totals[name] for name in COUNTED})
        return grown
