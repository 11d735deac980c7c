"""The object store that the lake and exports are kept in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow import fs

    from config.settings import Settings

CONNECT_S, READ_S, WRITE_S = 5, 20, 120


def object_store(settings: Settings, *, writes: bool = False) -> fs.S3FileSystem:
    """Return the S3-compatible store of PRESAGE_LAKE_S3_…; imports Arrow.

    A store that `writes` waits longer, as the store copies whole files, and uploads while it writes: otherwise what a
    slow store has not taken would pile up in memory, and its errors be told at the end.
    """
    from pyarrow import fs  # noqa: PLC0415 (slow to import, and not needed without a store)

    key, secret = settings.lake_s3_key, settings.lake_s3_secret
    return fs.S3FileSystem(
        access_key=key and key.get_secret_value(),
        secret_key=secret and secret.get_secret_value(),
        region=settings.lake_s3_region or None,
        endpoint_override=settings.lake_s3_endpoint or None,
        connect_timeout=CONNECT_S,
        request_timeout=WRITE_S if writes else READ_S,
        background_writes=not writes,
        allow_delayed_open=writes,  # a small file is one request, and leaves no upload behind that was never completed
    )


def in_bucket(place: str) -> str:
    """Return a place as Arrow names it: s3://bucket/path is bucket/path."""
    return place.removeprefix("s3://")
