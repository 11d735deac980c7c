"""The base of every table's declaration."""

from __future__ import annotations

from sqlalchemy import DateTime, MetaData, text

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    }
)

Time = DateTime(timezone=True)
NOW = text("now()")
EMPTY_ARRAY = text("'{}'")
EMPTY_OBJECT = text("'{}'::jsonb")
