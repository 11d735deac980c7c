"""One connection to the WebSocket API: signed, and alive as long as frames or pings come."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from picows import WSInvalidStatusError, WSMsgType, ws_connect
from picows.websockets.asyncio.client import ClientConnection
from picows.websockets.compat import Request, Response

from upstream.kalshi.failures import CLOCK, failure
from upstream.kalshi.signing import MISSING, Signer
from upstream.kalshi.socket.frames import parse
from upstream.transport.errors import SocketLost, Unauthenticated
from upstream.transport.http import USER_AGENT
from upstream.transport.websocket import CLOSE_S, FeedSocket

if TYPE_CHECKING:
    from collections.abc import Callable

    from picows import WSFrame, WSTransport, WSUpgradeRequest, WSUpgradeResponse

    from upstream.kalshi.socket.messages import SocketFrame

URL = "wss://external-api-ws.kalshi.com/trade-api/ws/v2"
MAX_FRAME = 64 << 20
"""Bytes, as documented."""
WRITE_LIMIT = 32 << 10  # bytes

_log = logging.getLogger(__name__)
_log.setLevel(logging.INFO)  # below, picows logs the request with its signature


class _Connection(ClientConnection):
    """A connection that notices pings, and answers them: on quiet markets nothing else comes."""

    heard_at = 0.0

    def __init__(self, clock: Callable[[], float], **options: Any) -> None:
        super().__init__(**options)
        self._monotonic = clock

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        self.heard_at = self._monotonic()
        if frame.msg_type == WSMsgType.PING:
            transport.send_pong(frame.get_payload_as_bytes())
        else:
            super().on_ws_frame(transport, frame)


class KalshiSocket(FeedSocket):
    """One signed connection, as an async context manager; any end of it raises `SocketLost`.

    Without a key Unauthenticated says what is missing. The exchange sends pings every ten seconds and answers ours, but
    its pings prove that it is alive, as data does. Where it refuses our clock, the signer's is set by its own.
    """

    def __init__(
        self,
        signer: Signer | None,
        url: str = URL,
        *,
        open_timeout_s: float = 10.0,
        stale_after_s: float = 30.0,
        max_frame: int = MAX_FRAME,
        max_queue: int = 1024,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(url, open_timeout_s=open_timeout_s, stale_after_s=stale_after_s, clock=clock)
        self._signer = signer
        self._max_frame = max_frame
        self._max_queue = max_queue

    async def _open(self) -> None:
        if self._signer is None:
            raise Unauthenticated(f"{self.url}: {MISSING}")
        parts = urlsplit(self.url)
        headers = {"User-Agent": USER_AGENT, **self._signer.headers("GET", parts.path)}
        try:
            _, connection = await ws_connect(
                self._accept,
                self.url,
                websocket_handshake_timeout=self._open_timeout_s,
                enable_auto_pong=False,
                max_frame_size=self._max_frame,
                max_redirects=0,  # a signature is for one host
                extra_headers=headers,
                proxy=_proxy(parts),
                logger_name=_log,
            )
        except WSInvalidStatusError as fault:
            raise SocketLost(self._refusal(fault)) from None
        assert isinstance(connection, ClientConnection)
        self._connection = connection

    def _accept(self, request: WSUpgradeRequest, response: WSUpgradeResponse) -> _Connection:
        return _Connection(
            self._clock,
            request=Request.from_picows(request),
            response=Response.from_picows(response),
            subprotocol=None,
            permessage_deflate=None,
            ping_interval=None,
            ping_timeout=None,
            close_timeout=CLOSE_S,
            max_queue=self._max_queue,
            write_limit=WRITE_LIMIT,
            max_message_size=self._max_frame,
            max_frame_size=self._max_frame,
            logger=_log,
        )

    def _refusal(self, fault: WSInvalidStatusError) -> str:
        """Return why the exchange refuses the connection; set the clock if that is why."""
        response = fault.response
        if response is None:
            return "cannot be opened: refused"
        said = failure(fault.raw_body or b"")
        reason = f"cannot be opened: {int(response.status)} {said or response.status.phrase}"
        if said is not None and said.code == CLOCK and self._signer is not None:
            if self._signer.resync(response.headers.get("Date")):
                return f"{reason}; the clock is set {self._signer.skew_s:+.0f} s"
            return f"{reason}; it does not say what time it is"
        return reason

    async def receive(self) -> tuple[float, SocketFrame]:
        """Return when the next frame came, and what it says."""
        frame, received = await self._receive()
        return received, parse(frame)

    async def command(self, command: dict[str, object]) -> None:
        """Send a command; SocketLost if the exchange does not read it for as long as it may be silent."""
        try:
            async with asyncio.timeout(self._stale_after_s):
                await self._send(command)
        except TimeoutError:
            raise SocketLost(f"a command could not be sent within {self._stale_after_s:g} s") from None

    async def _beat(self) -> None:
        """Abort a connection on which nothing has come for too long."""
        while True:
            if self._listening and isinstance(self._connection, _Connection):
                self._heard_at = max(self._heard_at, self._connection.heard_at)
            now = self._clock()
            stale_at = self._stale_at(now)
            if now >= stale_at:
                await self._die_of_silence()
                return
            await asyncio.sleep(max(0.01, stale_at - now))


def _proxy(url: SplitResult) -> str | None:
    """Return the proxy that the environment names for a URL."""
    secure = url.scheme == "wss"
    return None if proxy_bypass(url.hostname or "") else getproxies().get("https" if secure else "http")
