"""Server settings derived from the size of the machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MB = 1 << 20
GB = 1 << 30


def memory_bytes() -> int:
    """Return the memory available to this process: the machine's, or its container's limit."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            sizes.append(int(Path(limit).read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(sizes)


def server_settings(memory: int, cores: int) -> dict[str, str]:
    """Choose settings for a machine that runs the pipeline and the API beside the database."""
    return {
        # An eighth, not the customary quarter: Dagster, the feed and the API run on the same machine.
        "shared_buffers": _mb(memory // 8, 64 * MB, 4 * GB),
        "effective_cache_size": _mb(memory // 2, 128 * MB, 64 * GB),
        "work_mem": _mb(memory // 1000, 4 * MB, 16 * MB),
        "maintenance_work_mem": _mb(memory // 32, 32 * MB, 512 * MB),
        "max_connections": "200",
        "max_parallel_workers": str(cores),
        "max_parallel_workers_per_gather": str(min(2, cores // 2)),
        "max_worker_processes": str(8 + cores),
        # Its workers run jobs and policies, which this edition (Apache) does not have; they would only log failures,
        # and keep every database that they connect to from being copied or dropped.
        "timescaledb.max_background_workers": "0",
        "timescaledb.telemetry_level": "off",
        "shared_preload_libraries": "timescaledb",
        "synchronous_commit": "on",
        "wal_compression": "lz4",
        "min_wal_size": _mb(memory // 64, 80 * MB, GB),
        "max_wal_size": _mb(memory // 8, 512 * MB, 4 * GB),
        "checkpoint_timeout": "15min",
        "checkpoint_completion_target": "0.9",
        "random_page_cost": "1.1",
        "jit": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "dynamic_shared_memory_type": _shared_memory(),
    }


def log_settings(folder: Path) -> dict[str, str]:
    """Log to one file per weekday, overwritten a week later, so that logs never fill the disk."""
    return {
        "logging_collector": "on",
        "log_directory": str(folder),
        "log_filename": "postgresql-%a.log",
        "log_truncate_on_rotation": "on",
        "log_rotation_age": "1d",
        "log_rotation_size": "0",
        "log_line_prefix": "%m [%p] %a %d ",
        "log_min_duration_statement": "2s",
        "log_parameter_max_length": "256",  # bytes of each: the feed's rows are one parameter
        "log_lock_waits": "on",
    }


def written(settings: Mapping[str, str]) -> str:
    """Format settings for PostgreSQL's configuration files."""
    first = "# Written anew at each start. Change a setting with ALTER SYSTEM, which outranks this file.\n"
    lines = (f"{name} = '{value.replace(chr(39), chr(39) * 2)}'\n" for name, value in settings.items())
    return first + "".join(lines)


def host_rules(*, tcp: bool) -> str:
    """Return the authentication rules: whoever can enter the socket's folder, and by TCP whoever has the password."""
    rules = "# Written anew at each start.\nlocal all all trust\nlocal replication all trust\n"
    return rules + ("host all all 127.0.0.1/32 scram-sha-256\n" if tcp else "")


def _mb(size: int, least: int, most: int) -> str:
    return f"{max(least, min(size, most)) // MB}MB"


def _shared_memory() -> str:
    """Return the shared memory type: parallel queries use /dev/shm, of which a container often has only 64 MB."""
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108 - asked for its size, nothing is put there
    except OSError:
        return "mmap"
    return "posix" if found.f_frsize * found.f_blocks >= 256 * MB else "mmap"
