"""The stream, read without losing anything: reconnects, resumes, splits frames. Needs `websockets` and nothing else.

    from presage.client import Stream

    with Stream("http://localhost:8080", key, types=["trade"]) as events:
        for event in events:
            print(event.seq, event.data["price"])

`AsyncStream` is the same for `async with` and `async for`.
"""

from presage.client.asynchronous import AsyncStream
from presage.client.errors import Lost, Refused, StreamError, Unavailable
from presage.client.events import Event, Gap, Type
from presage.client.synchronous import Stream

__all__ = ["AsyncStream", "Event", "Gap", "Lost", "Refused", "Stream", "StreamError", "Type", "Unavailable"]
