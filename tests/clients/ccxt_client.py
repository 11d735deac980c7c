"""ccxt's `kalshi` against a sandbox: every public read; one line of JSON for each result. Argument: the sandbox's URL.

Not fetch_open_interest, which fails in ccxt 4.5.90 whatever the answer (KeyError: 'symbol').
"""

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import ccxt.prediction


async def main(url: str) -> None:
    exchange: Any = ccxt.prediction.kalshi({"enableRateLimit": False})
    exchange.urls["api"] = {"kalshi": f"{url}/trade-api/v2", "elections": f"{url}/v1"}

    async def say(name: str, call: Any) -> Any:
        try:
            value = await call
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            value = f"failed: {type(error).__name__}: {error}"[:500]
        print(json.dumps({"name": name, "value": value}, default=str), flush=True)
        return value

    try:
        markets = await say("markets", exchange.fetch_markets({"mve_filter": "exclude", "limit": 50}))
        # Not one that has opened since: the minute under way has no candle yet.
        began = (datetime.now(UTC) - timedelta(minutes=10)).isoformat()
        opened = [one for one in markets if one["info"]["open_time"] < began]
        ticker = max(opened, key=lambda one: float(one["info"]["volume_fp"]))["info"]["ticker"]
        event = next(one["info"]["event_ticker"] for one in markets if one["info"]["ticker"] == ticker)
        await say("status", exchange.fetch_status())
        await say("ticker", exchange.fetch_ticker(ticker))
        await say("ticker_no", exchange.fetch_ticker(f"{ticker}-NO"))
        await say("tickers", exchange.fetch_tickers([ticker]))
        await say("book", exchange.fetch_order_book(ticker))
        await say("book_no", exchange.fetch_order_book(f"{ticker}-NO"))
        await say("trades", exchange.fetch_trades(ticker, None, 5))
        await say("candles", exchange.fetch_ohlcv(ticker, "1m"))
        await say("event", exchange.fetch_event(event))
        await say("events", exchange.fetch_events({"category": "Sports"}))
    finally:
        await exchange.close()


asyncio.run(main(*sys.argv[1:]))
