"""The feed's periodic database work, over the lease's connection: heartbeats, tokens, gaps, figures."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Any

from config.exchanges import POLYMARKET, Exchange
from orchestration.feeds.lease import MAX_SILENT_S, READY_S, FeedLease, LeaseRow
from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.books.token_state import TokenState
from orchestration.ingest.gaps.starts import StartGaps
from orchestration.ingest.progress import Progress, Turn, settled_ms, turn
from orchestration.ingest.sockets.subscriptions import Catalogue
from sql.queries import feed as queries


class Housekeeping:
    """Runs the feed's periodic queries; every call blocks."""

    def __init__(
        self,
        lease: FeedLease,
        family: str,
        shard: Shard = WHOLE,
        exchange: Exchange = POLYMARKET,
        *,
        compare_s: float,
    ) -> None:
        self.lease = lease
        self._exchange = exchange
        self._stage = exchange.own("ingestion")
        self._family, self._shard = family, shard
        self._catalogue = Catalogue(shard, exchange)
        self._compare_s = compare_s
        self._compared_at: float | None = None  # monotonic; None: nothing was read yet
        self._volumes_at = 0  # Unix seconds

    def beat(self, role: str, detail: dict[str, Any], *, ready: bool) -> list[LeaseRow]:
        """Touch the lease and, as the leader, the stage's clock; return all leases of the shard."""
        leases = self.lease.touch(role, detail, ready=ready)
        if role == "leader":
            queries.beat_shards(
                self.lease.conn, stage=self._stage, family=self._family, shards=self._shard.of, run_id=self.lease.run_id
            )
        return leases

    def leads(self, pid: int) -> bool:
        """Return whether a server process still holds the lead, on the server that this connection is to now.

        On another server a process may have the same number and, rarely, be the leader's: then this says so.
        """
        return bool(queries.leads(self.lease.conn, feed=self.lease.feed, pid=pid))

    def turn(self, *, silent_count: bool) -> Turn:
        """Return whether it is this number of shards' turn to lead.

        `silent_count`: runs of another number that are silent count as alive, as the database may have been away.
        """
        shards = self._shard.of
        wanted, ready, others, others_lead = queries.turn(
            self.lease.conn,
            family=self._family,
            shards=shards,
            ready_s=READY_S,
            max_silent_s=MAX_SILENT_S,
            silent_count=silent_count,
        )
        return turn(shards, wanted, ready=ready, others=others, others_lead=others_lead)

    def committed_ms(self) -> int:
        """Return the exchange time up to which the shard's markets are committed, by whoever led them; 0: unknown."""
        rows = queries.progress(self.lease.conn, family=self._family, run_id=self.lease.run_id, stage=self._stage)
        return Progress(rows).least_ms(self._shard)

    def tokens(
        self, followed: Mapping[str, TokenState], unknown: Iterable[str] = ()
    ) -> tuple[list[Sequence[Any]], bool]:
        """Return tokens to follow and to follow no longer, at first all, and whether it is all.

        Later it is what has changed and, now and then, in what the catalogue differs from the tokens `followed`: some
        markets in each call, until all are compared.
        Of the changes are tokens that are named in messages, but not followed: most are of markets that have ended.
        """
        now = monotonic()
        if self._compared_at is None:
            rows, whole = self._catalogue.all(self.lease.conn), True
            self._compared_at = now
        else:
            if now - self._compared_at > self._compare_s and not self._catalogue.comparing:
                self._compared_at = now  # first: if the comparison fails, changes are read until the next one
                # The list is made at once, while no other thread can change the dictionary.
                self._catalogue.compare(Counter(state.token.market_key for state in [*followed.values()]))
            differing = self._catalogue.differences(self.lease.conn)
            changed = self._catalogue.changes(self.lease.conn, unknown)  # last: what is read later counts
            rows, whole = [*{row[0]: row for row in (*differing, *changed)}.values()], False
        return rows, whole

    def volumes(self) -> dict[int, int]:
        """Return the 24-hour USD volumes of markets that changed: they are recomputed each minute."""
        computed_at = queries.activity_computed_at(self.lease.conn)
        if computed_at in (None, self._volumes_at):
            return {}
        volumes = dict(queries.volumes(self.lease.conn, since=self._volumes_at))
        self._volumes_at = computed_at  # last: what a query that fails did not return is read again
        return volumes

    def check_starts(self, starts: StartGaps, *, since_ms: int, written_ms: int) -> None:
        """Write gaps at the start of new markets."""
        if self._catalogue.first is not None:
            starts.update(self.lease.conn, self._catalogue.first, since_ms=since_ms, written_ms=written_ms)

    def close_starts(self, starts: StartGaps, *, written_ms: int) -> None:
        """Close gaps at the start of new markets that are over."""
        starts.close(self.lease.conn, written_ms=written_ms)

    def close_abandoned(self, to_ms: int) -> None:
        """Close gaps left open by former leaders."""
        settled = settled_ms(self.lease.conn, self._family, self._shard)
        queries.close_abandoned_gaps(
            self.lease.conn,
            to_ms=to_ms,
            settled_ms=settled,
            exchange=self._exchange.name,
            **self._shard.columns(),
        )

    def stats(self, **figures: Any) -> None:
        """Insert a row of `feed_stats`."""
        queries.add_stats(self.lease.conn, feed=self.lease.feed, run_id=self.lease.run_id, **figures)
