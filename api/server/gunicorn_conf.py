"""Gunicorn's configuration from the settings: `gunicorn -c python:api.server.gunicorn_conf api.app:app`."""

from __future__ import annotations

import gc
from typing import Any

from config import settings

_given = settings.get()

worker_class = "api.server.worker.Worker"
logger_class = "api.server.log.Log"
bind = f"{_given.api_host}:{_given.api_port}"
workers = _given.api_workers
worker_connections = 2000  # per worker; an open stream holds one
graceful_timeout = round(_given.api_drain_s) + 10  # after SIGTERM, in seconds; then a worker is killed
timeout = 30
keepalive = 30
control_socket_disable = True  # its default path is one file per user, regardless of the number of servers
proc_name = "presage api"


def post_worker_init(worker: Any) -> None:  # noqa: ARG001
    """Exclude loaded objects from garbage collection, and collect small generations.

    Requests leave little garbage, connections some twenty objects each. Collecting 20,000 of them takes 25 ms, in
    which nobody is served; 2,000 take two. Older objects, which are many if clients are, are seldom collected.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 100, 50)
