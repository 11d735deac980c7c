"""Full days as Parquet and CSV files.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from presage_client import _endpoints
from presage_client._operations.base import BaseOperations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from presage_client import records


class ExportsOperations(BaseOperations):
    """Full days as Parquet and CSV files."""

    def exports(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        topic: Literal[
            "book_events",
            "book_events_kalshi",
            "candles",
            "candles_kalshi",
            "markets",
            "markets_kalshi",
            "settlements",
            "trades",
            "trades_kalshi",
        ]
        | None = None,
        exchange: Literal["kalshi", "polymarket"] | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
    ) -> records.ExportPage:
        """Exported days.

        Each night exports the previous day: markets, trades, candles, settlements, book events; Parquet and CSV.

        Credits: 1.

        Args:
            limit: Maximum number of rows in the response. Default: 50. At most 200.
            cursor: `next_cursor` of the previous page.
            topic: Only days of this topic.
            exchange: Whose topics are listed, unless `topic` names one. Default: polymarket.
            from_: Only this day (UTC) and later ones.
            to: Only this day (UTC) and earlier ones.
        """
        return self._call(
            _endpoints.EXPORTS,
            {},
            {"limit": limit, "cursor": cursor, "topic": topic, "exchange": exchange, "from": from_, "to": to},
        )

    def iter_exports(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        topic: Literal[
            "book_events",
            "book_events_kalshi",
            "candles",
            "candles_kalshi",
            "markets",
            "markets_kalshi",
            "settlements",
            "trades",
            "trades_kalshi",
        ]
        | None = None,
        exchange: Literal["kalshi", "polymarket"] | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
    ) -> Iterator[records.ExportedDay]:
        """Iterate over all pages of `exports`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.EXPORTS,
            {},
            {"limit": limit, "cursor": cursor, "topic": topic, "exchange": exchange, "from": from_, "to": to},
        )

    def export_manifest(self, topic: str, day: str | date) -> records.ExportManifest:
        """Files of an exported day.

        With the number of rows, the size in bytes and the SHA-256 of each.

        Credits: 1.

        Args:
            topic: markets, trades, candles, settlements or book_events; of another exchange with its name:
                trades_kalshi.
            day: A day (UTC): 2026-11-20.
        """
        return self._call(_endpoints.EXPORT_MANIFEST, {"topic": topic, "day": day}, {})

    def export_file(self, topic: str, day: str | date, file: str) -> bytes:
        """Download an exported file.

        Held in memory as a whole; `download_file` writes it to disk and resumes after a lost connection.

        Credits: 1.

        Args:
            topic: markets, trades, candles, settlements or book_events; of another exchange with its name:
                trades_kalshi.
            day: A day (UTC): 2026-11-20.
            file: A file's `name` from the manifest; without the hash in it, the current version.
        """
        return self._call(_endpoints.EXPORT_FILE, {"topic": topic, "day": day, "file": file}, {})
