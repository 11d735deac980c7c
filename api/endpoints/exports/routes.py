"""Routes of the export endpoints."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.exports import records
from api.endpoints.exports.requests import ExportParameters
from api.endpoints.exports.resource import Download, Exports, Manifest
from sql.queries import exports

PATH_DESCRIPTIONS = {
    "topic": "markets, trades, candles, settlements or book_events; of another exchange with its name: trades_kalshi",
    "day": "A day (UTC): 2026-11-20",
    "file": "A file's `name` from the manifest; without the hash in it, the current version",
}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="exports",
        path="/v1/exports",
        resource=Exports,
        parameters=ExportParameters,
        answers=records.ExportPage,
        errors=("invalid_cursor",),
        tag="Exports",
        summary="Exported days",
        description="Each night exports the previous day: markets, trades, candles, settlements, book events; "
        "Parquet and CSV.",
    ),
    Endpoint(
        name="export_manifest",
        path="/v1/exports/{topic}/{day}",
        resource=Manifest,
        query=exports.manifest,
        answers=records.ExportManifest,
        errors=("not_found",),
        missing="The day was not exported",
        hint="GET /v1/exports lists exported days",
        path_descriptions=PATH_DESCRIPTIONS,
        tag="Exports",
        summary="Files of an exported day",
        description="With the number of rows, the size in bytes and the SHA-256 of each.",
    ),
    Endpoint(
        name="export_file",
        path="/v1/exports/{topic}/{day}/{file}",
        resource=Download,
        query=exports.file,
        answers=str,
        media="application/octet-stream",
        errors=("not_found",),
        missing="The file does not exist",
        hint="GET /v1/exports/{topic}/{day} lists the files",
        path_descriptions=PATH_DESCRIPTIONS,
        tag="Exports",
        summary="Download an exported file",
        description="`Range` returns a part (206); `If-Range` with the `ETag` only if the file is unchanged. This "
        "resumes an "
        "interrupted download, and lets Parquet readers fetch only the columns they need. Each request costs its "
        "credit.",
    ),
)
