"""Opening a WebSocket: its options, and the failures that a new attempt does not solve."""

from __future__ import annotations

from contextlib import contextmanager
from ssl import SSLCertVerificationError
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidProxy, InvalidStatus, InvalidURI, SecurityError

from presage_client._address import host_of
from presage_client.stream.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from ssl import SSLContext

MAX_FRAME_BYTES = 16 << 20  # a book is one message, however long
Proxy = str | Literal[True] | None  # an address, or that of the environment, or none


def options(url: str, ssl: SSLContext | None, proxy: Proxy) -> dict[str, Any]:
    """Return the arguments of websockets' `connect`."""
    given: dict[str, Any] = {"compression": None, "max_size": MAX_FRAME_BYTES, "proxy": proxy}
    return given | ({"ssl": ssl} if ssl is not None and url.startswith("wss:") else {})


@contextmanager
def final_failures(url: str) -> Iterator[None]:
    """Turn failures that are final into `Refused`: those of websockets have the address in them, and so the key."""
    refused = Refused("invalid_address", f"{host_of(urlsplit(url))} redirects or is not a valid address")
    try:
        yield
    except SSLCertVerificationError as error:
        raise Refused("invalid_certificate", f"{host_of(urlsplit(url))}: {error.verify_message}") from None
    except InvalidProxy:
        raise Refused("invalid_address", "the proxy's address is not valid") from None
    except InvalidStatus as answer:
        if answer.response.status_code // 100 == 3:  # one that was not followed
            raise refused from None
        raise
    except (InvalidURI, SecurityError, ValueError):
        raise refused from None


class AsyncConnect(connect):
    """websockets' `connect` for asyncio, with these failures."""

    def __await__(self) -> Generator[Any, None, ClientConnection]:
        with final_failures(self.uri):
            return (yield from super().__await__())
