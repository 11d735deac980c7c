"""The feed's housekeeping in the database, over the lease's connection: signs of life, tokens, gaps, figures."""

from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import msgspec

from orchestration.feeds.lease import Held, Lease
from orchestration.ingest.gaps.losses import Losses, Saving
from orchestration.ingest.gaps.starts import Starts
from orchestration.ingest.sockets.subscriptions import Catalogue
from sql.queries import feed as queries

STAGE = "ingestion"


class Housekeeping:
    """Every call blocks."""

    def __init__(self, lease: Lease, *, all_tokens_s: float) -> None:
        self.lease = lease
        self._catalogue = Catalogue()
        self._all_tokens_s = all_tokens_s
        self._read_all_at = float("-inf")
        self._volumes_at = 0  # Unix seconds

    def beat(self, role: str, detail: dict[str, Any], *, ready: bool, newest_ms: int) -> list[Held]:
        """Touch the lease and, as the leader, the stage's clock; give all leases of the feed."""
        leases = self.lease.touch(role, detail, ready=ready)
        detail = {**detail, "clock_ahead_ms": self.lease.clock_ahead_ms}
        if role == "leader":
            queries.beat(
                self.lease.conn,
                stage=STAGE,
                last_data_at=datetime.fromtimestamp(newest_ms / 1000, UTC) if newest_ms else None,
                detail=msgspec.json.encode({"run_id": self.lease.run_id, **detail}).decode(),
            )
        return leases

    def tokens(self, *, strangers: bool) -> tuple[list[Sequence[Any]], bool]:
        """Read what to follow: what changed, or now and then everything; say which."""
        whole = strangers or monotonic() - self._read_all_at > self._all_tokens_s
        if not whole:
            return self._catalogue.changes(self.lease.conn), False
        rows = self._catalogue.all(self.lease.conn)
        self._read_all_at = monotonic()
        return rows, True

    def volumes(self) -> dict[int, int]:
        """Read the 24 hours' USD of the markets for which it has changed: each minute it is computed anew."""
        computed_at = queries.activity_computed_at(self.lease.conn)
        since, self._volumes_at = self._volumes_at, computed_at or 0
        if since == self._volumes_at:
            return {}
        return dict(queries.volumes(self.lease.conn, since=since))

    def save(self, losses: Losses, saving: Saving) -> None:
        """Write what was missed."""
        losses.write(self.lease.conn, saving)

    def look_at_starts(self, starts: Starts, *, since_ms: int) -> None:
        """Write what is missing of new markets."""
        if self._catalogue.first is not None:
            starts.look(self.lease.conn, self._catalogue.first, since_ms=since_ms)

    def close_abandoned(self, to_ms: int) -> None:
        """Close gaps left open by runs that lead no longer."""
        queries.close_abandoned_gaps(self.lease.conn, to_ms=to_ms)

    def stats(self, **figures: Any) -> None:
        """Add a row of figures."""
        queries.add_stats(self.lease.conn, feed=self.lease.feed, run_id=self.lease.run_id, **figures)

    def close(self) -> None:
        """Let go of the connection."""
        self.lease.close()
