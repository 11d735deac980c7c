"""Base backups of the embedded server by pgBackRest, its archived write-ahead log, and recovery to a moment."""

from sql.backup.base.options import Options
from sql.backup.base.repository import Repository

__all__ = ["Options", "Repository"]
