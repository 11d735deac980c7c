"""SQL statements that merge incoming markets into the stored ones, generated from the table's declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from psycopg import sql

from sql import tables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from psycopg.abc import Query

OURS = {"market_key", "first_seen_at", "updated_at"}
FIELDS = tuple(column.name for column in tables.markets.c if column.name not in OURS)
COMPARED = tuple(name for name in FIELDS if name != "raw")
# These change with every trade: they count as a change, but do not justify rewriting the exchange's whole object.
MEASURED = {"outcome_prices", "volume_usd", "volume_24h_usd", "liquidity_usd"}
DESCRIBED = tuple(name for name in COMPARED if name not in MEASURED)


def _columns(names: Iterable[str], prefix: str = "") -> str:
    return ", ".join(f"{prefix}{name}" for name in names)


def _new(name: str) -> str:
    """Return the SQL for a stored field `b.name` given the incoming `i.name`."""
    if name == "status":
        return "case when b.status = 'RESOLVED' then b.status else coalesce(i.status, b.status) end"
    if name in {"closed_at", "resolved_at", "winning_outcome"}:  # reopened: these are unknown again
        return f"case when i.status = 'ACTIVE' then null else coalesce(i.{name}, b.{name}) end"
    return f"coalesce(i.{name}, b.{name})"


def _given(name: str) -> str:
    """Return the SQL for a new row's field, with its default if nothing was sent."""
    if name == "raw":
        return "i.raw::jsonb"
    default = tables.markets.c[name].server_default
    return f"i.{name}" if default is None else f"coalesce(i.{name}, {cast('Any', default).arg.text})"


def _differs(names: Iterable[str]) -> str:
    named = tuple(names)
    return f"({_columns(named, 'b.')}) is distinct from ({', '.join(_new(name) for name in named)})"


def _statement(text: str) -> Query:
    return sql.SQL(cast("Any", text))  # names come only from sql.tables, never from outside


# Most objects of the exchange are 4-8 kB: stored plain in the row, they are not compressed just to be read once.
INCOMING = _statement(
    f"""
    create temp table if not exists incoming_markets with (toast_tuple_target = 8160) on commit delete rows as
    select {_columns(COMPARED)}, raw::text as raw from markets with no data
    """  # noqa: S608
)

COPY = _statement(f"copy incoming_markets ({_columns((*COMPARED, 'raw'))}) from stdin")

# An exchange ID that now names another market is taken from the market that had it.
RELEASE_IDS = _statement(
    "update markets m set gamma_id = null from incoming_markets i "
    "where m.gamma_id = i.gamma_id and m.market_id <> i.market_id"
)


def _updated(raw: str) -> str:
    """Return the SQL for when an exchange last changed an object: Polymarket's field, or Kalshi's."""
    return f"coalesce({raw} ->> 'updatedAt', {raw} ->> 'updated_time')"


# RESOLVED is final: contradicting data (mostly a page from a cache) is ignored. So is data that would reopen a market,
# but is older than what closed it.
UPDATE = _statement(
    f"""
    update markets m set
        {", ".join(f"{name} = {_new(name)}" for name in COMPARED)},
        raw = case when b.raw is null or {_differs(DESCRIBED)} then coalesce(i.raw::jsonb, b.raw) else b.raw end,
        updated_at = now()
    from incoming_markets i join markets b on b.market_id = i.market_id
    where m.market_key = b.market_key
      and case
            when b.status = 'RESOLVED' then coalesce(i.status, b.status) = b.status
            when b.status = 'CLOSED' and i.status = 'ACTIVE'
                then coalesce({_updated("i.raw::jsonb")} >= {_updated("b.raw")} collate "C", true)
            else true
          end
      and {_differs(COMPARED)}
    returning m.market_key, b.status, m.status
    """  # noqa: S608
)

INSERT = _statement(
    f"""
    insert into markets ({_columns(FIELDS)})
    select {", ".join(_given(name) for name in FIELDS)}
    from incoming_markets i
    where i.question is not null and i.outcomes is not null and i.token_ids is not null
      and not exists (select from markets m where m.market_id = i.market_id)
    order by i.created_at nulls first, i.market_id
    returning market_key
    """  # noqa: S608
)
