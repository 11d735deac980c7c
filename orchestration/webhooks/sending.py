"""One attempt: a signed POST to an address that has been judged, and what came back."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import httpcore
import httpx
from standardwebhooks import Webhook

from orchestration.webhooks.schedule import Outcome
from upstream.transport import addresses
from upstream.transport.addresses import Forbidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from upstream.transport.addresses import Network, Resolve

KEPT_OPEN_S = 15.0
MOST_CONNECTIONS = 200
ANSWER_KEPT = 500  # bytes of an answer that go into the log
ERROR_KEPT = 500  # characters of a fault, which may hold what the receiver sent
ANSWER_READ = 65_536  # bytes after which nobody listens any longer
AGENT = "Presage-Webhooks/1"


class Judged(httpcore.AsyncNetworkBackend):
    """Connects to hosts whose every address may be spoken to: resolved once, connected to what was judged."""

    def __init__(self, allowed: Sequence[Network], resolve: Resolve) -> None:
        self._allowed, self._resolve = allowed, resolve
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the library's signature)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address that takes it."""
        found = await asyncio.to_thread(addresses.checked, host, port, self._allowed, self._resolve)
        fault: Exception | None = None
        for address in found:
            try:
                return await self._plain.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                fault = error
        assert fault is not None
        raise fault

    async def sleep(self, seconds: float) -> None:
        """Wait, as the library asks."""
        await asyncio.sleep(seconds)


class _Met:
    """What an attempt has met with so far."""

    def __init__(self) -> None:
        self.fresh = False
        self.status: int | None = None
        self.headers: Sequence[tuple[bytes, bytes]] = ()
        self.answer = b""

    async def trace(self, what: str, _info: dict[str, Any]) -> None:
        """Hear what the library does."""
        self.fresh = self.fresh or what == "connection.connect_tcp.started"


class Sender:
    """Sends messages; made and used within one event loop."""

    def __init__(
        self,
        *,
        timeout_s: float,
        clock: Callable[[], float],
        allowed: Sequence[Network] = (),
        resolve: Resolve = addresses.resolve,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._timeout_s, self._clock = timeout_s, clock
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context or httpx.create_ssl_context(),
            max_connections=MOST_CONNECTIONS,
            keepalive_expiry=KEPT_OPEN_S,
            network_backend=Judged(allowed, resolve),
        )

    async def send(self, url: str, secrets: Sequence[str], message_id: str, body: str) -> Outcome:
        """Make one attempt. Redirects are not followed, and nothing is raised."""
        began = self._clock()
        met = _Met()
        error = None
        try:
            async with asyncio.timeout(self._timeout_s):
                request = httpx.Request(
                    "POST",
                    addresses.parse(url),
                    headers=headers(secrets, message_id, began, body),
                    content=body.encode(),
                    extensions={"trace": met.trace},
                )
                await self._ask(request, met)
        except TimeoutError:
            error = f"no whole answer within {self._timeout_s:g} s"
        except Forbidden as refusal:
            error = str(refusal)
        except ssl.SSLError as fault:
            error = f"TLS: {fault.reason or fault}"
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as fault:
            error = _said(fault)
        return Outcome(
            began=began,
            ended=self._clock(),
            status=met.status,
            # With a status it was the rest of the answer that failed.
            error=error[:ERROR_KEPT].replace("\0", "") if error is not None and met.status is None else None,
            answer=met.answer.decode(errors="replace").replace("\0", ""),
            retry_after_s=_retry_after(met.headers, began),
        )

    async def _ask(self, request: httpx.Request, met: _Met) -> None:
        """Send it; again, if it went into a connection that had been kept open and was not any longer."""
        where = request.url
        while True:
            met.fresh = False
            try:
                async with self._pool.stream(
                    "POST",
                    # In parts, so that nobody reads the URL a second time, and perhaps otherwise.
                    httpcore.URL(scheme=where.raw_scheme, host=where.raw_host, port=where.port, target=where.raw_path),
                    headers=request.headers.raw,
                    content=request.content,
                    extensions=request.extensions,
                ) as response:
                    met.status, met.headers = response.status, response.headers
                    met.answer = await _beginning(response)
                    return
            except (httpcore.NetworkError, httpcore.ProtocolError):
                if met.fresh or met.status is not None:
                    raise

    async def close(self) -> None:
        """Let go of the connections that are kept open."""
        await self._pool.aclose()


def headers(secrets: Sequence[str], message_id: str, at: float, body: str) -> dict[str, str]:
    """Give the headers of an attempt; while secrets are being rotated, it is signed with both."""
    instant = datetime.fromtimestamp(at, UTC)
    return {
        "content-type": "application/json",
        "user-agent": AGENT,
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at)),
        "webhook-signature": " ".join(Webhook(secret).sign(message_id, instant, body) for secret in secrets),
    }


async def _beginning(response: httpcore.Response) -> bytes:
    kept, read = b"", 0
    async for chunk in response.aiter_stream():
        kept = (kept + chunk)[:ANSWER_KEPT]
        read += len(chunk)
        if read > ANSWER_READ:
            break
    return kept


def _retry_after(given: Sequence[tuple[bytes, bytes]], now: float) -> float | None:
    """Read how long the receiver wants to be left alone: seconds, or a date."""
    text = next((value.decode("latin-1") for name, value in given if name.lower() == b"retry-after"), "")
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        return max(parsedate_to_datetime(text).timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return None


def _said(fault: Exception) -> str:
    """Say a fault as its receiver's owner can make use of it."""
    kind = {"ConnectError": "cannot connect", "ConnectTimeout": "cannot connect in time"}.get(type(fault).__name__)
    text = str(fault) or type(fault).__name__
    return f"{kind}: {text}" if kind else text
