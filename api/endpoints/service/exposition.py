"""Prometheus metrics of a server: of all its workers, whichever one is scraped."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import psycopg
from cachetools import TTLCache, cached
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from api.data.replica import ReplicaReads
from api.errors import CATALOGUE, Problem
from api.metrics.counts import FAILED_KEYS, Counter
from sql import disk
from sql.queries import audit, backups, diagnosis, pipeline, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client.metrics_core import Metric

    from api.data.pool import Pool
    from api.metrics.slots import EndpointSlots
    from api.service import Service

T = TypeVar("T")

SNAPSHOT_TTL_S = 1.0  # how long one database read serves all scrapes
STORAGE_TTL_S = 300.0  # each chunk's files are looked at

COUNTERS = {
    Counter.CREDITS_SPENT: ("presage_credits_spent", "Credits charged for answered requests"),
    Counter.LEASES_ASKED: ("presage_credit_lease_requests", "Requests for credits to the database"),
    Counter.FRAMES: ("presage_stream_frames", "Frames sent to subscribers of the stream"),
    Counter.SLOW_CLOSED: (
        "presage_stream_slow_consumers_closed",
        "Subscribers disconnected because they were too slow",
    ),
    Counter.REFUSED_ADDRESS: (
        "presage_unauthenticated_refusals",
        "Requests without a valid key beyond their address's budget",
    ),
    Counter.CONNECTIONS_MADE: ("presage_database_connections_opened", "Connections opened to the database"),
    Counter.CONNECTIONS_LACKING: (
        "presage_database_pool_timeouts",
        "Requests that timed out waiting for a database connection",
    ),
}
GAUGES = {
    Counter.IN_FLIGHT: ("presage_http_requests_in_flight", "Requests in progress, including open streams"),
    Counter.SUBSCRIBERS: ("presage_stream_subscribers", "Open streams"),
}
REFUSED = {"second": Counter.REFUSED_SECOND, "month": Counter.REFUSED_MONTH}
SERVER = {  # in the order of the query's columns
    "presage_database_server_connections": "Connections to the database server, of all programs",
    "presage_database_server_connections_max": "Connections that the database server allows",
    "presage_database_transaction_age": "Age of the database server's oldest unfrozen transaction, in transactions",
}
STORAGE = {  # in the order of StorageSnapshot
    "presage_database_size_bytes": "The database's size, without its write-ahead log",
    "presage_database_disk_free_bytes": "Free space on the database's disk",
    "presage_database_disk_days_left": "Free space by the database's growth per day, as `presage doctor` forecasts it",
    "presage_last_backup_timestamp_seconds": "When a backup last succeeded, into a file or as a base backup",
}
STATES = ("fresh", "late", "stale", "missing", "off")
SHARDS = {  # in the order of the query's columns
    "presage_shard_led": "1 if a run leads a shard of the live feed",
    "presage_shard_standby": "1 if another run of a shard could take over at once",
    "presage_shard_messages_per_second": "Messages that a shard's leader receives, on average over a minute",
    "presage_shard_backlog_events": "Events that a shard's leader has received and not written yet",
    "presage_shard_lag_p99_seconds": "99th percentile of a shard's lag, from the exchange's timestamp to the commit",
}
BACKUPS = {  # in the order of the query's columns, after the first
    "presage_wal_archived_age_seconds": "Since the write-ahead log was last archived",
    "presage_base_backup_age_seconds": "Since the newest base backup was completed",
    "presage_restore_check_age_seconds": "Since the restore of a base backup was last checked",
    "presage_restore_check_ok": "1 if that check succeeded",
}
POOLS = {
    "reads": Counter.READS_BUSY,
    "writes": Counter.WRITES_BUSY,
    "events": Counter.EVENTS_BUSY,
    "unauthenticated": Counter.UNAUTHENTICATED_BUSY,
}


@dataclass
class PipelineSnapshot:
    """Pipeline and stream state read from the database; `stages` is None while it is unreachable."""

    stages: list[tuple[str, str, float | None]] | None = None
    head: int = 0
    clocks: list[tuple[str, float]] = field(default_factory=list)
    shards: list[tuple[Any, ...]] = field(default_factory=list)
    backups: tuple[Any, ...] = ()


class StorageSnapshot(NamedTuple):
    """Figures of the database's files; None: unknown."""

    size: float | None = None
    free: float | None = None
    days_left: float | None = None
    backup_at: float | None = None


class MetricsCollector(Collector):
    """Collects all metrics on each scrape."""

    def __init__(self, service: Service, slots: EndpointSlots) -> None:
        self._service, self._counts, self._slots = service, service.host.counts, slots
        self._snapshot = cached(TTLCache(1, SNAPSHOT_TTL_S))(self._read_snapshot)
        self._storage = cached(TTLCache(1, STORAGE_TTL_S))(self._read_storage)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self) -> bytes:
        """Return the metrics in the text exposition format."""
        return generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering does not query the database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield every metric family."""
        yield InfoMetricFamily("presage_build", "The running version", {"version": metadata.version("presage")})
        yield GaugeMetricFamily("presage_workers", "Worker processes", self._counts.workers())
        yield from self._requests()
        yield from self._numbers()
        yield from self._ledger()
        yield from self._database()
        yield from self._server()

    def _requests(self) -> Iterator[Metric]:
        answered = CounterMetricFamily(
            "presage_http_requests", "Requests answered, by endpoint and status", labels=["endpoint", "status"]
        )
        took = HistogramMetricFamily(
            "presage_http_request_duration_seconds",
            "From receiving a request's headers to sending the response's; without streams",
            labels=["endpoint"],
        )
        for slot, name in enumerate(self._slots.names):
            if (counts := self._counts.answered(slot)) is None:
                continue
            for status, count in counts.statuses.items():
                answered.add_metric([name, status], count)
            took.add_metric([name], counts.buckets, counts.seconds)
        problems = CounterMetricFamily("presage_http_problems", "Failed requests, by problem code", labels=["code"])
        for code, count in zip(CATALOGUE, self._counts.problems(), strict=False):
            problems.add_metric([code], count)
        yield from (answered, took, problems)

    def _numbers(self) -> Iterator[Metric]:
        counts = self._counts
        for number, (name, about) in COUNTERS.items():
            yield CounterMetricFamily(name, about, counts.of(number))
        for number, (name, about) in GAUGES.items():
            yield GaugeMetricFamily(name, about, counts.of(number))
        refused = CounterMetricFamily(
            "presage_credits_refused",
            "Requests refused because the credits of the second or month were used up",
            labels=["window"],
        )
        for window, number in REFUSED.items():
            refused.add_metric([window], counts.of(number))
        failed = CounterMetricFamily("presage_failed_keys", "Requests with a key that is not valid", labels=["result"])
        for result, number in FAILED_KEYS.items():
            failed.add_metric([result], counts.of(number))
        busy = GaugeMetricFamily("presage_database_connections_busy", "Database connections in use", labels=["pool"])
        for pool, number in POOLS.items():
            busy.add_metric([pool], counts.of(number))
        yield from (refused, failed, busy)

    def _ledger(self) -> Iterator[Metric]:
        if self._service.ledger.opened:
            leases, unspent = self._service.ledger().totals()
            yield GaugeMetricFamily("presage_credit_leases", "Keys for which this host has leased credits", leases)
            yield GaugeMetricFamily("presage_credits_leased", "Leased credits that this host has not spent", unspent)

    def _database(self) -> Iterator[Metric]:
        known = self._snapshot()
        yield GaugeMetricFamily("presage_database_up", "1 if the database is reachable", known.stages is not None)
        if known.stages is None:
            return
        lag = GaugeMetricFamily(
            "presage_stage_lag_seconds", "Age of a stage's newest data; discovery: of its last check", labels=["stage"]
        )
        fresh = GaugeMetricFamily(
            "presage_stage_fresh",
            "1 if a stage is fresh; absent for a stage that is off",
            labels=["stage"],
        )
        state = GaugeMetricFamily(
            "presage_stage_status", "1 for a stage's current status, 0 for the others", labels=["stage", "status"]
        )
        for stage, status, seconds in known.stages:
            if status != "off":
                fresh.add_metric([stage], status == "fresh")
            for each in STATES:
                state.add_metric([stage, each], status == each)
            if seconds is not None:
                lag.add_metric([stage], seconds)
        clocks = GaugeMetricFamily(
            "presage_feed_clock_ahead_seconds",
            "How far the clock of a feed's host is ahead of the database's; the maximum over its runs",
            labels=["feed"],
        )
        for feed, ahead_s in known.clocks:
            clocks.add_metric([feed], ahead_s)
        yield from (lag, fresh, state, clocks, *_shards(known.shards), *_backups(known.backups))
        yield CounterMetricFamily(
            "presage_stream_events", "Stream events ever written: the newest event's seq", known.head
        )
        behind = [known.head - position for position in self._counts.each(Counter.STREAM_POSITION) if position]
        yield GaugeMetricFamily(
            "presage_stream_lag_events",
            "Events not yet delivered by the slowest worker that has subscribers",
            max([0, *behind]),
        )

    def _server(self) -> Iterator[Metric]:
        known = dict(zip(SERVER, self._read(self._service.writes, pipeline.server) or (), strict=False))
        known |= dict(zip(STORAGE, self._storage(), strict=True))
        for name, about in {**SERVER, **STORAGE}.items():
            if (figure := known.get(name)) is not None:
                yield GaugeMetricFamily(name, about, figure)
        reads = self._service.reads
        replica = reads.replica if isinstance(reads, ReplicaReads) else reads  # also while the primary is read
        if (lag := self._read(replica, pipeline.replica_lag)) is not None:
            yield GaugeMetricFamily(
                "presage_database_replica_lag_seconds",
                "Age of the newest transaction that the read replica has replayed",
                lag,
            )

    def _read_storage(self) -> StorageSnapshot:
        def read(conn: Any) -> StorageSnapshot:
            size, growth = diagnosis.size(conn), diagnosis.growth(conn)
            free = disk.free_bytes(conn, size, self._service.database_disk_gb)
            days_left = max(free, 0) / growth if free is not None and growth else None
            return StorageSnapshot(size, free, days_left, audit.last_backup(conn))

        return self._read(self._service.reads, read) or StorageSnapshot()

    @staticmethod
    def _read(pool: Pool | ReplicaReads, work: Callable[[Any], T]) -> T | None:
        """Read the database, which may be unreachable."""
        try:
            return pool.read(work)
        except (psycopg.Error, Problem):
            return None

    def _read_snapshot(self) -> PipelineSnapshot:
        return PipelineSnapshot(*(self._read(self._service.reads, _read_pipeline) or ()))


def _shards(known: list[tuple[Any, ...]]) -> Iterator[Metric]:
    families = [GaugeMetricFamily(name, about, labels=["exchange", "shard"]) for name, about in SHARDS.items()]
    for exchange, shard, *figures in known:
        for family, figure in zip(families, figures, strict=True):
            if figure is not None:
                family.add_metric([exchange, shard], figure)
    return iter(families)


def _backups(known: tuple[Any, ...]) -> Iterator[Metric]:
    """Yield the metrics of base backups, where the server archives its write-ahead log."""
    if not known or not known[0]:
        return
    for (name, about), figure in zip(BACKUPS.items(), known[1:], strict=True):
        if figure is not None:
            yield GaugeMetricFamily(name, about, figure)


def _read_pipeline(conn: Any) -> tuple[list[Any], int, list[Any], list[Any], Any]:
    return (
        list(pipeline.lags(conn)),
        stream.head(conn) or 0,
        list(pipeline.clocks(conn)),
        list(pipeline.shards(conn)),
        backups.ages(conn),
    )
