"""Rival server: a market's trades by FastAPI, asyncpg and uvicorn. Same SQL; no keys, no metering, no headers."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated

import asyncpg
from fastapi import FastAPI, HTTPException, Query, Request, Response

from config import settings
from sql.queries import trades as queries

NAME = "presage rival"
CONNECTIONS = 8
DAY, AHEAD = timedelta(days=1), timedelta(minutes=1)
ARGUMENTS = ("market_key", "outcome", "market_id", "token_id", "since", "until", "limit")
MARKET = "select market_key, market_id, token_ids[1] from markets where market_id = $1"


def numbered(sql: str) -> str:
    """Convert a named query's parameters to asyncpg's numbered ones."""
    return re.sub(r"%\((\w+)\)s", lambda named: f"${ARGUMENTS.index(named[1]) + 1}", sql)


async def _as_it_is(conn: object) -> None:
    """Leave a connection unreset: asyncpg's reset would cost a second round trip per request."""


@asynccontextmanager
async def _connected(app: FastAPI) -> AsyncIterator[None]:
    url = settings.get().database_url
    assert url is not None
    pool = asyncpg.create_pool(
        url.get_secret_value(),
        min_size=CONNECTIONS,
        max_size=CONNECTIONS,
        reset=_as_it_is,
        server_settings={"application_name": NAME, "timezone": "UTC"},
    )
    async with pool as app.state.pool:
        app.state.markets = {}
        yield


app = FastAPI(lifespan=_connected, openapi_url=None)
TRADES = numbered(queries.of_outcome.sql)


@app.get("/v1/markets/{market_id}/trades")
async def trades(market_id: str, request: Request, limit: Annotated[int, Query(ge=1, le=5000)] = 100) -> Response:
    """Return trades of a market's first outcome, newest first."""
    state = request.app.state
    async with state.pool.acquire() as conn:
        market = state.markets.get(market_id)
        if market is None:
            market = state.markets[market_id] = await conn.fetchrow(MARKET, market_id)
        if market is None:
            raise HTTPException(404)
        key, name, token = market
        until = datetime.now(UTC) + AHEAD
        text, _ = await conn.fetchrow(TRADES, key, 0, name, token, until - DAY, until, limit)
    return Response(text, media_type="application/json")
