"""The event stream: `Stream` for threads, `AsyncStream` for asyncio. It reconnects, resumes and drops duplicates."""

from presage_client.stream.asynchronous import AsyncStream
from presage_client.stream.errors import Lost, Refused, StreamError, Unavailable
from presage_client.stream.events import Event, StreamGap, Type
from presage_client.stream.synchronous import Stream

__all__ = ["AsyncStream", "Event", "Lost", "Refused", "Stream", "StreamError", "StreamGap", "Type", "Unavailable"]
