"""What gunicorn logs, in the format of every other process."""

from __future__ import annotations

from typing import Any

from gunicorn.glogging import Logger

from config import logging as logs
from config import settings


class Log(Logger):  # type: ignore[misc]
    """gunicorn's two logs, of errors and (where it is told to keep one) of access."""

    def setup(self, cfg: Any) -> None:
        """Set up what gunicorn does, and then how a line looks."""
        super().setup(cfg)
        logs.configure("api")
        form = logs.formatter(settings.get().log_format)
        for handler in [*self.error_log.handlers, *self.access_log.handlers]:
            handler.setFormatter(form)
