"""Gunicorn's logger, in the log format of all processes."""

from __future__ import annotations

from typing import Any

from gunicorn.glogging import Logger

from config import settings
from config.logging import configure, formatter


class Log(Logger):  # type: ignore[misc]
    """gunicorn's error log and, if enabled, its access log."""

    def setup(self, cfg: Any) -> None:
        """Set up gunicorn's loggers with our formatter."""
        super().setup(cfg)
        configure("api")
        form = formatter(settings.get().log_format)
        for handler in [*self.error_log.handlers, *self.access_log.handlers]:
            handler.setFormatter(form)
