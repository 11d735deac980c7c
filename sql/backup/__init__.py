"""Backup and restore of the whole database: pg_dump and pg_restore, as TimescaleDB requires."""

from sql.backup.errors import BackupError
from sql.backup.origin import Origin
from sql.backup.restoring import restore
from sql.backup.saving import save

__all__ = ["BackupError", "Origin", "restore", "save"]
