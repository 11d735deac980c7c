"""pykalshi-client against a sandbox: every public read, then the WebSocket; one line of JSON for each result.

Arguments: the sandbox's URL, the id of an RSA key, whose private half comes on stdin, and `reads`, `socket` or `gaps`.
"""

import asyncio
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from pykalshi import ClientConfig, KalshiCredentials, KalshiHttpClient, KalshiSequenceGapError, KalshiWebSocketClient

MESSAGES = 100
KINDS = {"subscribed", "orderbook_snapshot", "orderbook_delta", "trade", "ticker"}
GONE = {
    "market_type": {"fractional_trading_enabled": False, "liquidity_dollars": "0.0000"},
    "collateral_return_type": {"available_on_brokers": True},
}
"""Fields that the exchange has dropped since, and without which this client parses no market (1) and no event (2)."""


def say(name: str, value: Any) -> None:
    print(json.dumps({"name": name, "value": value}), flush=True)


def with_gone(value: Any) -> Any:
    """Return an answer with the fields that its markets no longer have."""
    if isinstance(value, list):
        return [with_gone(one) for one in value]
    if not isinstance(value, dict):
        return value
    whole = {name: with_gone(one) for name, one in value.items()}
    for mark, gone in GONE.items():
        whole = gone | whole if mark in whole else whole
    return whole


class Client(KalshiHttpClient):
    """The client, for an exchange that is newer than it."""

    async def get(self, *args: Any, **kwargs: Any) -> Any:
        return with_gone(await super().get(*args, **kwargs))


async def open_markets(client: KalshiHttpClient) -> list[Any]:
    """Return open markets, but none that has opened since the exchange was started: it may have no trade yet."""
    began = (datetime.now(UTC) - timedelta(minutes=10)).isoformat()
    markets = (await client.get_markets(limit=200, status="open", mve_filter="exclude")).markets
    return [market for market in markets if market.open_time < began]


async def reads(client: KalshiHttpClient) -> None:
    """Call every public read, whose answers the client parses into its models."""
    markets = await open_markets(client)
    market = max(markets, key=lambda one: float(one.volume_fp))
    event = (await client.get_event(market.event_ticker)).event
    past = (await client.get_historical_markets(limit=1)).markets[0]
    now = int(time.time())
    period = {"start_ts": now - 86_400, "end_ts": now, "period_interval": 1}
    of_series = event.series_ticker
    calls = {
        "status": client.get_exchange_status(),
        "schedule": client.get_exchange_schedule(),
        "announcements": client.get_exchange_announcements(),
        "user_data_timestamp": client.get_user_data_timestamp(),
        "limits": client.get_api_limits(),
        "endpoint_costs": client.get_endpoint_costs(),
        "market": client.get_market(market.ticker),
        "orderbook": client.get_market_orderbook(market.ticker, depth=3),
        "orderbooks": client.get_market_orderbooks([market.ticker, markets[1].ticker]),
        "candles": client.get_market_candlesticks(of_series, market.ticker, **period),
        "candles_of_many": client.get_batch_market_candlesticks([market.ticker], **period),
        "candles_of_event": client.get_event_candlesticks(of_series, event.event_ticker, **period),
        "trades": client.get_trades(limit=5),
        "events": client.get_events(limit=50, with_nested_markets=True),
        "combos": client.get_multivariate_events(limit=5),
        "metadata": client.get_event_metadata(event.event_ticker),
        "event_fees": client.get_event_fee_changes(),
        "percentiles": client.get_forecast_percentile_history(
            of_series, event.event_ticker, percentiles=[5000], **period
        ),
        "series": client.get_series(of_series),
        "all_series": client.get_series_list(category="Sports"),
        "series_fees": client.get_fee_changes(),
        "tags": client.get_tags_by_categories(),
        "sports": client.get_filters_by_sport(),
        "cutoff": client.get_historical_cutoff(),
        "past_market": client.get_historical_market(past.ticker),
        "past_candles": client.get_historical_market_candlesticks(
            past.ticker, start_ts=0, end_ts=now, period_interval=1440
        ),
        "past_trades": client.get_historical_trades(limit=5),
        "milestones": client.get_milestones(limit=5),
        "targets": client.get_structured_targets(),
        "live_data": client.get_live_data_batch(milestone_ids=["none"]),
        "incentives": client.get_incentive_programs(),
        "collections": client.get_multivariate_event_collections(),
    }
    for name, call in calls.items():
        try:
            say(name, (await call).model_dump(mode="json"))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            say(name, f"failed: {type(error).__name__}: {error}"[:500])


async def socket(client: KalshiHttpClient, ws: KalshiWebSocketClient, *, gaps: bool) -> None:
    """Follow busy markets until there are messages enough, of all kinds; ask for snapshots, or recover from gaps."""
    markets = await open_markets(client)
    tickers = [one.ticker for one in sorted(markets, key=lambda one: -float(one.volume_fp))[:20]]
    types: dict[str, int] = {}
    wanted = {*KINDS, "gap"} if gaps else KINDS
    enough, snapshots = asyncio.Event(), asyncio.Event()

    async def heard(message: str) -> None:
        kind = json.loads(message)["type"]
        types[kind] = types.get(kind, 0) + 1
        if sum(types.values()) >= MESSAGES and wanted <= types.keys():
            enough.set()
        if types.get("orderbook_snapshot", 0) >= len(tickers) + 3:
            snapshots.set()

    ws.on_message_callback = heard
    await ws.connect()
    await ws.add_markets(tickers, ["orderbook_delta", "trade", "ticker"])

    async def listen() -> None:
        while True:
            try:
                await ws.listener_loop()
            except KalshiSequenceGapError as gap:
                types["gap"] = types.get("gap", 0) + 1
                await ws.resubscribe_channel(gap.channel)

    listener = asyncio.create_task(listen())
    await enough.wait()
    if not gaps:
        await ws.request_snapshot(tickers[:3])
        await snapshots.wait()
    listener.cancel()
    await ws.close()
    say("types", types)


async def main(url: str, key_id: str, what: str) -> None:
    credentials = KalshiCredentials.from_pem_string(key_id, sys.stdin.read())
    config = ClientConfig(http_base_url=url, ws_base_url=url.replace("http", "ws"))
    async with Client(credentials, config) as client:
        if what == "reads":
            await reads(client)
        else:
            await socket(client, KalshiWebSocketClient(credentials, config), gaps=what == "gaps")


asyncio.run(main(*sys.argv[1:]))
