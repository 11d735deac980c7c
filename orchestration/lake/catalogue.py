"""The lake's catalogue, in our own database, and the files that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pyarrow import fs
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import IdentityTransform

from sql import database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from config.settings import Settings
    from orchestration.lake.tables import LakeTable

NAMESPACE = "presage"
SORTED_BY = ("market_id", "outcome", "ts")
PROPERTIES = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


class Lake:
    """The catalogue of a lake. Tables are made when they are first written."""

    def __init__(self, url: str, settings: Settings) -> None:
        if not settings.lake:
            raise ValueError("PRESAGE_LAKE is not set")
        self.location = settings.lake if settings.lake.startswith("s3://") else f"file://{settings.lake}"
        self.catalog = SqlCatalog(
            "presage",
            uri=database.sqlalchemy_url(url),
            warehouse=self.location,
            init_catalog_tables="false",
            **_object_store(settings),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.catalog.close()

    def table(self, table: LakeTable) -> Table | None:
        """Return a table as it stands now; None: nothing was written yet."""
        try:
            return self.catalog.load_table((NAMESPACE, table.name))
        except NoSuchTableError:
            return None

    def made(self, table: LakeTable) -> Table:
        """Return a table, made if need be."""
        if (stored := self.table(table)) is not None:
            return stored
        location = f"{self.location}/{table.name}"
        if next(listed(load_file_io(self.catalog.properties, location), f"{location}/data"), None):
            raise ValueError(
                f"{location} has files of a table that this database's catalogue does not have, which a sweep would"
                " delete: set PRESAGE_LAKE to another place, or restore the database that wrote them"
            )
        self.catalog.create_namespace_if_not_exists(NAMESPACE)
        names = [name for name in SORTED_BY if name in table.columns]
        order = SortOrder(
            *(
                SortField(
                    source_id=list(table.columns).index(name) + 1,
                    transform=IdentityTransform(),
                    direction=SortDirection.ASC,
                    null_order=NullOrder.NULLS_LAST,
                )
                for name in names
            )
        )
        return self.catalog.create_table_if_not_exists(
            (NAMESPACE, table.name),
            table.schema,
            location=location,
            partition_spec=table.partitions,
            sort_order=order,
            properties={**PROPERTIES, "comment": table.description},
        )


def data_files(table: Table) -> Iterator[DataFile]:
    """Return the files of a table's current snapshot."""
    snapshot = table.current_snapshot()
    if snapshot is not None:
        for manifest in snapshot.manifests(table.io):
            for entry in manifest.fetch_manifest_entry(table.io):
                yield entry.data_file


def listed(io: FileIO, location: str) -> Iterator[tuple[str, datetime]]:
    """Return all files below a place, and when each was written."""
    assert isinstance(io, PyArrowFileIO)
    scheme, netloc, path = PyArrowFileIO.parse_location(location)
    selector = fs.FileSelector(path, recursive=True, allow_not_found=True)
    for file in io.fs_by_scheme(scheme, netloc).get_file_info(selector):
        if file.type == fs.FileType.File:
            yield f"{scheme}://{file.path}", file.mtime


def exists(io: FileIO, path: str) -> bool:
    """Return whether there is such a file."""
    return io.new_input(path).exists()


def _object_store(settings: Settings) -> dict[str, Any]:
    given = {
        "s3.endpoint": settings.lake_s3_endpoint,
        "s3.region": settings.lake_s3_region,
        "s3.access-key-id": settings.lake_s3_key and settings.lake_s3_key.get_secret_value(),
        "s3.secret-access-key": settings.lake_s3_secret and settings.lake_s3_secret.get_secret_value(),
    }
    return {name: value for name, value in given.items() if value} if settings.lake.startswith("s3://") else {}
