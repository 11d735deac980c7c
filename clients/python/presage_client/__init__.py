"""Python client of Presage: typed REST operations and a resuming event stream.

    from presage_client import Client

    with Client("http://localhost:8080", key) as presage:
        for market in presage.iter_markets(status="ACTIVE"):
            print(market.slug, market.volume_24h_usd)
        with presage.stream(types=["trade"]) as events:
            for event in events:
                print(event.seq, event.data["price"])

`AsyncClient` is the same for asyncio. `records` has the types of answers; requests fail with `PresageError`.
"""

from presage_client import records
from presage_client._record import Record, Records
from presage_client.async_client import AsyncClient
from presage_client.client import Client
from presage_client.errors import PresageError
from presage_client.stream import AsyncStream, Event, Lost, Refused, Stream, StreamError, StreamGap, Type, Unavailable

__all__ = [
    "AsyncClient",
    "AsyncStream",
    "Client",
    "Event",
    "Lost",
    "PresageError",
    "Record",
    "Records",
    "Refused",
    "Stream",
    "StreamError",
    "StreamGap",
    "Type",
    "Unavailable",
    "records",
]
