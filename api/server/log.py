"""Gunicorn's logger, in the log format of all processes."""

from __future__ import annotations

from typing import Any

from gunicorn.glogging import Logger

from config import logging as logs
from config import settings


class Log(Logger):  # type: ignore[misc]
    """gunicorn's error log and, if enabled, its access log."""

    def setup(self, cfg: Any) -> None:
        """Set up gunicorn's loggers with our formatter."""
        super().setup(cfg)
        logs.configure("api")
        form = logs.formatter(settings.get().log_format)
        for handler in [*self.error_log.handlers, *self.access_log.handlers]:
            handler.setFormatter(form)
