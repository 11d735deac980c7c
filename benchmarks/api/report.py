"""Report: the measured part of docs/performance.md."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sql.database import connect
from sql.embedded.configuration import memory_bytes

if TYPE_CHECKING:
    from api.endpoints.base.endpoint import Endpoint
    from benchmarks.figures import Figure

BEGIN, END = "<!-- measured by `presage bench api` -->", "<!-- end -->"


class Latency(NamedTuple):
    """An endpoint's latency, in milliseconds."""

    endpoint: Endpoint
    asked: int
    p50: float
    p99: float
    size: float  # bytes, the mean
    largest: float | None = None  # p99 of the largest answers
    wrong: str = ""  # error instead of a response


class Report:
    """Contents of the report."""

    def __init__(self, load: tuple[float, float, float]) -> None:
        self.load = load
        self.at = datetime.now(UTC)
        self.server = ""
        self.rows: dict[str, int] = {}
        self.compared: list[Figure] = []
        self.latencies: list[Latency] = []

    def __str__(self) -> str:
        return "\n".join([self._where(), "", *self._comparison(), "", *self._endpoints()])

    def _where(self) -> str:
        rows = ", ".join(f"{count:,} {table}" for table, count in self.rows.items())
        return (
            f"Measured {self.at:%Y-%m-%d %H:%M} UTC on {machine()}; {self.server}. Load average before: "
            f"{', '.join(f'{each:.2f}' for each in self.load)}.\n\nSimulated data: {rows}."
        )

    def _comparison(self) -> list[str]:
        lines = [
            "| CPU a request, app and its database connections | ours, µs | rival | its, µs | ratio (turns) | target |"
        ]
        lines.append("| --- | ---: | --- | ---: | --- | --- |")
        for each in self.compared:
            ratio = f"{each.ratio or 0:.2f}"
            if each.spread:
                ratio += f" ({each.spread[0]:.2f} to {each.spread[1]:.2f})"
            lines.append(
                f"| {each.figure} | {each.value:.0f} | {each.rival} | {each.rival_value or 0:.0f} | {ratio} "
                f"| {'' if each.met is None else f'{each.target}: met' if each.met else f'{each.target}: missed'} |"
            )
        return lines

    def _endpoints(self) -> list[str]:
        lines = [
            "| endpoint; one client, no cache | p50, ms | p99, ms | mean answer | largest, p99, ms | cached for |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
        ]
        for each in sorted(self.latencies, key=lambda each: -each.p99):
            endpoint = each.endpoint
            name, kept = f"`{endpoint.method} {endpoint.path}`", f"{endpoint.cache_s:g} s" if endpoint.cache_s else ""
            if each.wrong:
                lines.append(f"| {name} | not measured: {each.wrong.splitlines()[0][:80]} | | | | {kept} |")
                continue
            largest = "" if each.largest is None else f"{each.largest:.1f}"
            size = f"{each.size / 1000:.1f} kB"
            lines.append(f"| {name} | {each.p50:.1f} | {each.p99:.1f} | {size} | {largest} | {kept} |")
        return lines


def machine() -> str:
    """Return a description of this machine."""
    models = [line.partition(":")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    cpu = models[0].strip() if models else platform.machine()
    cores = len(os.sched_getaffinity(0))
    memory, versions = memory_bytes() / (1 << 30), f"Linux {platform.release()}, Python {platform.python_version()}"
    return f"{cores} cores of {cpu}, {memory:.0f} GB, {versions}"


def versions(url: str) -> str:
    """Return the database's versions."""
    with connect(url) as conn:
        row = conn.execute(
            "select current_setting('server_version'), extversion, current_setting('shared_buffers') "
            "from pg_extension where extname = 'timescaledb'"
        ).fetchone()
    assert row is not None
    return f"PostgreSQL {row[0]}, TimescaleDB {row[1]} (Apache), shared_buffers {row[2]}"


def write(file: Path, page: Report | str, *, begin: str = BEGIN) -> None:
    """Replace the previously measured part, or append it if there is none."""
    text = file.read_text() if file.exists() else ""
    before, found, rest = text.partition(begin)
    after = rest.partition(END)[2] if found else "\n"
    temporary = file.with_name(f".{file.name}.new")
    temporary.write_text(f"{before}{begin}\n{page}\n{END}{after}")
    temporary.replace(file)
