"""The metrics of a server, as Prometheus reads them: of all its workers, whichever is asked."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

import psycopg
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from api.errors import CATALOGUE, Problem
from api.metrics.counts import Number
from sql.queries import pipeline, stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.metrics_core import Metric

    from api.metrics.slots import EndpointSlots
    from api.service import Service

KEPT_S = 1.0  # so long one look at the database does for all who ask

COUNTERS = {
    Number.CREDITS_SPENT: ("presage_credits_spent", "Credits that answered requests cost"),
    Number.LEASES_ASKED: ("presage_credit_lease_requests", "Times that credits were asked of the database"),
    Number.FRAMES: ("presage_stream_frames", "Frames sent to subscribers of the stream"),
    Number.SLOW_CLOSED: ("presage_stream_slow_consumers_closed", "Subscribers closed because they lagged"),
    Number.CONNECTIONS_MADE: ("presage_database_connections_opened", "Connections opened to the database"),
    Number.CONNECTIONS_LACKING: (
        "presage_database_pool_timeouts",
        "Requests that found all connections to the database busy for too long",
    ),
}
GAUGES = {
    Number.IN_FLIGHT: ("presage_http_requests_in_flight", "Requests being answered, open streams among them"),
    Number.SUBSCRIBERS: ("presage_stream_subscribers", "Open streams"),
}
REFUSED = {"second": Number.REFUSED_SECOND, "month": Number.REFUSED_MONTH}
STATES = ("fresh", "late", "stale", "missing", "off")
POOLS = {"reads": Number.READS_BUSY, "writes": Number.WRITES_BUSY, "events": Number.EVENTS_BUSY}


@dataclass
class Known:
    """What the database says of stages and stream; None while it says nothing."""

    until: float = 0.0
    stages: list[tuple[str, str, float | None]] | None = None
    head: int = 0
    clocks: list[tuple[str, float]] = field(default_factory=list)


class Metrics(Collector):
    """Gives each metric anew when it is asked for."""

    def __init__(self, service: Service, slots: EndpointSlots) -> None:
        self._service, self._counts, self._slots = service, service.host.counts, slots
        self._known = Known()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self) -> bytes:
        """Give the exposition."""
        return generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        """Promise nothing beforehand: registering must not ask the database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Give every family."""
        yield InfoMetricFamily("presage_build", "What is running", {"version": metadata.version("presage")})
        yield GaugeMetricFamily("presage_workers", "Processes that answer", self._counts.workers())
        yield from self._requests()
        yield from self._numbers()
        yield from self._ledger()
        yield from self._database()

    def _requests(self) -> Iterator[Metric]:
        answered = CounterMetricFamily(
            "presage_http_requests", "Requests answered, by endpoint and status", labels=["endpoint", "status"]
        )
        took = HistogramMetricFamily(
            "presage_http_request_duration_seconds",
            "From a request's headers to its answer's; streams are not among them",
            labels=["endpoint"],
        )
        for place, name in enumerate(self._slots.names):
            if (told := self._counts.answered(place)) is None:
                continue
            for status, count in told.statuses.items():
                answered.add_metric([name, status], count)
            took.add_metric([name], told.buckets, told.seconds)
        problems = CounterMetricFamily(
            "presage_http_problems", "Failed requests by their problem's code", labels=["code"]
        )
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
            "presage_credits_refused", "Requests refused for want of credits of the second or month", labels=["window"]
        )
        for window, number in REFUSED.items():
            refused.add_metric([window], counts.of(number))
        busy = GaugeMetricFamily("presage_database_connections_busy", "Connections in use", labels=["pool"])
        for pool, number in POOLS.items():
            busy.add_metric([pool], counts.of(number))
        yield from (refused, busy)

    def _ledger(self) -> Iterator[Metric]:
        if self._service.ledger.opened:
            leases, unspent = self._service.ledger().held()
            yield GaugeMetricFamily("presage_credit_leases", "Keys for which this host holds credits", leases)
            yield GaugeMetricFamily("presage_credits_leased", "Credits that this host holds and has not spent", unspent)

    def _database(self) -> Iterator[Metric]:
        known = self._look()
        yield GaugeMetricFamily("presage_database_up", "Whether the database answers", known.stages is not None)
        if known.stages is None:
            return
        lag = GaugeMetricFamily(
            "presage_stage_lag_seconds", "How old a stage's newest data is; discovery: its last look", labels=["stage"]
        )
        fresh = GaugeMetricFamily(
            "presage_stage_fresh",
            "Whether a stage is as fresh as it should be; none of one that is off",
            labels=["stage"],
        )
        state = GaugeMetricFamily(
            "presage_stage_status", "1 of the state that a stage is in", labels=["stage", "status"]
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
            "How far the clock of a feed's host is ahead of the database's; of its runs the furthest",
            labels=["feed"],
        )
        for feed, ahead_s in known.clocks:
            clocks.add_metric([feed], ahead_s)
        yield from (lag, fresh, state, clocks)
        yield CounterMetricFamily(
            "presage_stream_events", "Events of the stream ever written: the newest one's seq", known.head
        )
        behind = [known.head - position for position in self._counts.each(Number.STREAM_POSITION) if position]
        yield GaugeMetricFamily(
            "presage_stream_lag_events",
            "Events that the worker furthest behind has not handed out yet; of workers with subscribers",
            max([0, *behind]),
        )

    def _look(self) -> Known:
        """Ask the database, unless that was done a moment ago; it may not answer."""
        if self._known.until < time.monotonic():
            try:
                rows = self._service.reads.read(_told)
                self._known = Known(time.monotonic() + KEPT_S, *rows)
            except (psycopg.Error, Problem):
                self._known = Known(time.monotonic() + KEPT_S)
        return self._known


def _told(conn: Any) -> tuple[list[tuple[str, str, float | None]], int, list[tuple[str, float]]]:
    return list(pipeline.lags(conn)), stream.head(conn) or 0, list(pipeline.clocks(conn))
