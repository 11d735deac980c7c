"""Options of base backups, from the settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sql.backup.errors import BackupError

if TYPE_CHECKING:
    from config.settings import Settings

OFF = "PRESAGE_BACKUP_REPOSITORY is not set"


@dataclass(frozen=True)
class Options:
    """Where base backups are kept, and how."""

    repository: str
    passphrase: str | None = field(default=None, repr=False)
    fulls_kept: int = 2
    s3_endpoint: str = ""
    s3_region: str = ""
    s3_key: str | None = field(default=None, repr=False)
    s3_secret: str | None = field(default=None, repr=False)
    s3_ca_file: Path | None = None

    @property
    def folder(self) -> Path | None:
        """Return the repository's folder; None if it is an object store."""
        return None if self.repository.startswith("s3://") else Path(self.repository)

    def lines(self) -> list[str]:
        """Return the lines of pgBackRest's configuration that describe the repository."""
        if self.folder is not None:
            said = {"path": str(self.folder)}
        else:
            bucket, _, path = self.repository.removeprefix("s3://").partition("/")
            if not (self.s3_key and self.s3_secret):
                raise BackupError(
                    "PRESAGE_BACKUP_REPOSITORY names an object store, without the keys to it",
                    "set PRESAGE_BACKUP_S3_KEY and PRESAGE_BACKUP_S3_SECRET",
                )
            said = {
                "type": "s3",
                "path": f"/{path.strip('/')}",
                "s3-bucket": bucket,
                "s3-endpoint": self.s3_endpoint,
                "s3-region": self.s3_region,
                "s3-key": self.s3_key,
                "s3-key-secret": self.s3_secret,
                "s3-uri-style": "host" if self.s3_endpoint.endswith(".amazonaws.com") else "path",
            }
            if self.s3_ca_file is not None:
                said["storage-ca-file"] = str(self.s3_ca_file)
        if self.passphrase is not None:
            said |= {"cipher-type": "aes-256-cbc", "cipher-pass": self.passphrase}
        said["retention-full"] = str(self.fulls_kept)
        return [f"repo1-{name}={value}" for name, value in said.items()]


def of(settings: Settings) -> Options | None:
    """Return the settings' options; None if base backups are off."""
    if not settings.backup_repository:
        return None

    def clear(name: str) -> str | None:
        secret = getattr(settings, name)
        return secret.get_secret_value() if secret else None

    return Options(
        repository=settings.backup_repository,
        passphrase=clear("backup_passphrase"),
        fulls_kept=settings.backup_fulls_kept,
        s3_endpoint=settings.backup_s3_endpoint,
        s3_region=settings.backup_s3_region,
        s3_key=clear("backup_s3_key"),
        s3_secret=clear("backup_s3_secret"),
        s3_ca_file=settings.backup_s3_ca_file,
    )
