"""`gunicorn -c python:api.server.gunicorn_conf api.app:app`: the server as the settings want it."""

from __future__ import annotations

import gc
from typing import Any

from api.server import host
from config import settings

_given = settings.get()

worker_class = "api.server.worker.Worker"
logger_class = "api.server.log.Log"
bind = f"{_given.api_host}:{_given.api_port}"
workers = _given.api_workers
worker_connections = 2000  # of each worker; a stream holds one as long as it is open
graceful_timeout = 10
timeout = 30
keepalive = 30
control_socket_disable = True  # its default place is one file a user, whatever the number of servers
proc_name = "presage api"


def post_worker_init(worker: Any) -> None:  # noqa: ARG001
    """Leave what is loaded for good out of every later look for garbage, and look at little at once.

    Requests leave little, connections some twenty objects each. A look at 20,000 of them takes 25 ms, in which nobody
    is served; at 2,000 it takes two. Older ones, which are many if clients are, are seldom looked at again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 100, 50)


def on_reload(server: Any) -> None:
    """Have the workers that are about to be replaced tell their clients that they can come back at once."""
    host.shared.restarts.up_to(server.worker_age)
