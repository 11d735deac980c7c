"""Exports: whole days as files."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.exports import records
from api.endpoints.exports.requests import ExportsOf
from api.endpoints.exports.resource import Download, Exports, Manifest
from sql.queries import exports

EXPLAINED = {
    "topic": "markets, trades, candles, settlements or book_events",
    "day": "A day (UTC): 2026-11-20",
    "file": "A file's `name`, from the manifest; without the digits in it, whichever version there is",
}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="exports",
        path="/v1/exports",
        resource=Exports,
        parameters=ExportsOf,
        answers=records.ExportPage,
        errors=("invalid_cursor",),
        tag="Exports",
        summary="Days that were written to files",
        description="Each night the day before: markets, trades, candles, settlements, book events; Parquet and CSV.",
    ),
    Endpoint(
        name="export_manifest",
        path="/v1/exports/{topic}/{day}",
        resource=Manifest,
        query=exports.manifest,
        answers=records.ExportManifest,
        errors=("not_found",),
        missing="This day was not exported",
        hint="GET /v1/exports lists those that were",
        explained=EXPLAINED,
        tag="Exports",
        summary="The files of a day",
        description="With the rows, the bytes and the SHA-256 of each.",
    ),
    Endpoint(
        name="export_file",
        path="/v1/exports/{topic}/{day}/{file}",
        resource=Download,
        query=exports.file,
        answers=str,
        media="application/octet-stream",
        errors=("not_found",),
        missing="There is no such file",
        hint="GET /v1/exports/{topic}/{day} lists the files",
        explained=EXPLAINED,
        tag="Exports",
        summary="A file, whole or in ranges",
        description="`Range` gives a part (206), `If-Range` with the `ETag` only of the same file: an interrupted "
        "download goes on, and Parquet readers fetch only the columns that they need. Each request costs its credit.",
    ),
)
