"""The object store that the lake and exports are kept in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow import fs

    from config.settings import Settings

CONNECT_S, REQUEST_S = 5, 20


def object_store(settings: Settings) -> fs.S3FileSystem:
    """Return the S3-compatible store of PRESAGE_LAKE_S3_…; imports Arrow."""
    from pyarrow import fs  # noqa: PLC0415 (slow to import, and not needed without a store)

    key, secret = settings.lake_s3_key, settings.lake_s3_secret
    return fs.S3FileSystem(
        access_key=key and key.get_secret_value(),
        secret_key=secret and secret.get_secret_value(),
        region=settings.lake_s3_region or None,
        endpoint_override=settings.lake_s3_endpoint or None,
        connect_timeout=CONNECT_S,
        request_timeout=REQUEST_S,
    )
