"""Keys that encrypt webhook secrets: from the settings, or from a file that `presage up` creates."""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING

from config import secret_files

if TYPE_CHECKING:
    from pathlib import Path

    from config.settings import Settings

FILE = "webhook_encryption_keys"


def read(settings: Settings) -> list[str]:
    """Return the keys, newest first; none if neither the setting nor the file has any."""
    if settings.webhook_encryption_keys is not None:
        return settings.webhook_encryption_keys.get_secret_value().replace(",", " ").split()
    try:
        return _file(settings).read_text().split()
    except FileNotFoundError:
        return []


def ensure(settings: Settings) -> None:
    """Create the file with a first key, unless there are keys."""
    if not read(settings):
        add(settings)


def add(settings: Settings) -> None:
    """Put a new key before those of the file, which stay valid."""
    secret_files.write(_file(settings), "".join(f"{key}\n" for key in (new(), *read(settings))))


def new() -> str:
    """Return a new key: 256 random bits in URL-safe base64."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def _file(settings: Settings) -> Path:
    return settings.data_folder / FILE
