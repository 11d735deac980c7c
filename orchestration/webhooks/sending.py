"""One attempt: a signed POST to a verified address, and its response."""

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
from upstream.transport.addresses import ForbiddenAddress
from upstream.transport.http import tls_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from upstream.transport.addresses import Network, Resolve

KEEPALIVE_S = 15.0
MAX_CONNECTIONS = 200
MAX_ANSWER_LOGGED = 500  # bytes of a response that are stored in the log
MAX_ERROR_CHARS = 500  # characters of a fault, which may contain what the receiver sent
MAX_ANSWER_READ = 65_536  # bytes of a response that are read at most
AGENT = "Presage-Webhooks/1"


class VerifiedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to hosts whose every address is allowed: resolves once, and connects to the verified address."""

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
        """Connect to the first address that accepts."""
        found = await asyncio.to_thread(addresses.resolve_allowed, host, port, self._allowed, self._resolve)
        fault: Exception | None = None
        for address in found:
            try:
                return await self._plain.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                fault = error
        assert fault is not None
        raise fault

    async def sleep(self, seconds: float) -> None:
        """Sleep, as the library requires."""
        await asyncio.sleep(seconds)


class _Trace:
    """Trace of an attempt so far."""

    def __init__(self) -> None:
        self.fresh = False
        self.status: int | None = None
        self.headers: Sequence[tuple[bytes, bytes]] = ()
        self.answer = b""

    async def trace(self, what: str, _info: dict[str, Any]) -> None:
        """Record the library's progress events."""
        self.fresh = self.fresh or what == "connection.connect_tcp.started"


class Sender:
    """Sends messages; created and used within one event loop."""

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
            ssl_context=context or tls_context(),
            max_connections=MAX_CONNECTIONS,
            keepalive_expiry=KEEPALIVE_S,
            network_backend=VerifiedBackend(allowed, resolve),
        )

    async def send(self, url: str, secrets: Sequence[str], message_id: str, body: str) -> Outcome:
        """Make one attempt. Redirects are not followed, and nothing is raised."""
        began = self._clock()
        met = _Trace()
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
                await self._request(request, met)
        except TimeoutError:
            error = f"no complete answer within {self._timeout_s:g} s"
        except ForbiddenAddress as refusal:
            error = str(refusal)
        except ssl.SSLError as fault:
            error = f"TLS: {fault.reason or fault}"
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as fault:
            error = _describe_fault(fault)
        return Outcome(
            began=began,
            ended=self._clock(),
            status=met.status,
            # With a status, it was reading the rest of the response that failed.
            error=error[:MAX_ERROR_CHARS].replace("\0", "") if error is not None and met.status is None else None,
            answer=met.answer.decode(errors="replace").replace("\0", ""),
            retry_after_s=_retry_after(met.headers, began),
        )

    async def _request(self, request: httpx.Request, met: _Trace) -> None:
        """Send a request; once more if a kept-alive connection had been closed meanwhile."""
        where = request.url
        while True:
            met.fresh = False
            try:
                async with self._pool.stream(
                    "POST",
                    # In parts, so that the URL is not parsed a second time, perhaps differently.
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
        """Close kept-alive connections."""
        await self._pool.aclose()


def headers(secrets: Sequence[str], message_id: str, at: float, body: str) -> dict[str, str]:
    """Return the headers of an attempt; while secrets are being rotated, it is signed with both."""
    second = int(at)  # once: half a microsecond before the next second a `datetime` is already in that one
    instant = datetime.fromtimestamp(second, UTC)
    return {
        "content-type": "application/json",
        "user-agent": AGENT,
        "webhook-id": message_id,
        "webhook-timestamp": str(second),
        "webhook-signature": " ".join(Webhook(secret).sign(message_id, instant, body) for secret in secrets),
    }


async def _beginning(response: httpcore.Response) -> bytes:
    kept, read = b"", 0
    async for chunk in response.aiter_stream():
        kept = (kept + chunk)[:MAX_ANSWER_LOGGED]
        read += len(chunk)
        if read > MAX_ANSWER_READ:
            break
    return kept


def _retry_after(given: Sequence[tuple[bytes, bytes]], now: float) -> float | None:
    """Parse the Retry-After header: seconds, or a date; return seconds."""
    text = next((value.decode("latin-1") for name, value in given if name.lower() == b"retry-after"), "")
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        return max(parsedate_to_datetime(text).timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return None


def _describe_fault(fault: Exception) -> str:
    """Describe a fault in terms useful to the receiver's owner."""
    kind = {"ConnectError": "cannot connect", "ConnectTimeout": "cannot connect in time"}.get(type(fault).__name__)
    text = str(fault) or type(fault).__name__
    return f"{kind}: {text}" if kind else text
