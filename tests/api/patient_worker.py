"""A worker that waits long for the next request on an idle connection, so that a busy machine closes none too early."""

from api.server import worker

worker.IDLE_S = 60.0
Worker = worker.Worker
