"""Check that tables have their declared columns."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sqlalchemy.dialects import postgresql

from sql.queries import quality as queries
from sql.tables import metadata

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psycopg

_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]


def mismatches(conn: psycopg.Connection[Any], tables: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Compare columns with their declaration; return those that are missing, unexpected, or of another type."""
    declared = [
        {"table_name": table, "column_name": column.name, "type": column.type.compile(_DIALECT).lower()}
        for table in tables
        for column in metadata.tables[table].columns
    ]
    found = defaultdict(list)
    for table, column, wanted, there in queries.columns_amiss(conn, declared=json.dumps(declared)):
        found[table].append({"column": column, "declared": wanted, "found": there})
    return dict(found)
