"""The exchange's own client, pointed at our address: prints each event it parses, one per line."""

import asyncio
import dataclasses
import json
import sys
from typing import Any

from polymarket import AsyncPublicClient
from polymarket.environments import PRODUCTION, _create_environment
from polymarket.streams import MarketSpec

LAST = 12  # events after which none follow


async def main(url: str, *tokens: str) -> None:
    config: Any = dataclasses.replace(PRODUCTION._config, clob_market_ws_url=url)
    async with AsyncPublicClient(environment=_create_environment(name="replay", config=config)) as client:
        heard = 0
        async with await client.subscribe(MarketSpec(asset_ids=tokens, custom_feature_enabled=True)) as events:
            async for event in events:
                print(json.dumps({"type": event.type, "payload": event.payload.model_dump(mode="json")}), flush=True)
                heard += 1
                if heard == LAST:
                    return


asyncio.run(main(*sys.argv[1:]))
