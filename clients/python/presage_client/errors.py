"""The error of a request: an RFC 9457 problem of the service, or a failure to reach it."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import httpx
import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_DETAIL = 500  # characters of a body that is no problem document
# What decoding a body raises, invalid UTF-8 and deep nesting included.
NOT_UNDERSTOOD = (msgspec.MsgspecError, ValueError, RecursionError)


class _Problem(msgspec.Struct):
    code: str
    detail: str
    hint: str | None = None
    errors: list[dict[str, Any]] | None = None
    request_id: str | None = None


class PresageError(Exception):
    """A request failed. Decide by `code`; quote `request_id` in reports.

    Codes of the service are in its documentation (`not_found`, `burst_exceeded`, …). The client adds
    `connection_failed` and `timeout` (`status` is None), `invalid_response` (a body that does not match the document
    or is too large) and `http_<status>` (a failure that is no problem document, as proxies answer).
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int | None = None,
        hint: str | None = None,
        errors: Sequence[dict[str, Any]] = (),
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code, detail)
        self.code, self.detail, self.status, self.hint = code, detail, status, hint
        self.errors = list(errors)  # of `invalid_parameter` and the like: the fields that are wrong
        self.request_id = request_id
        self.retry_after = retry_after  # seconds

    def __str__(self) -> str:
        status = f" ({self.status})" if self.status else ""
        return f"{self.code}{status}: {self.detail}" + (f" {self.hint}" if self.hint else "")


def of_response(response: httpx.Response, content: bytes, now: float) -> PresageError:
    """Return the error of an answer that is no success; `now` is the Unix time, for a Retry-After that is a date."""
    status, after = response.status_code, parse_retry_after(response.headers.get("Retry-After"), now)
    try:
        problem = msgspec.json.decode(content, type=_Problem)
    except NOT_UNDERSTOOD:
        text = content[: 4 * MAX_DETAIL].decode("utf-8", "replace")[:MAX_DETAIL].strip() or response.reason_phrase
        request_id = response.headers.get("X-Request-Id")
        return PresageError(f"http_{status}", text, status=status, request_id=request_id, retry_after=after)
    return PresageError(
        problem.code,
        problem.detail,
        status=status,
        hint=problem.hint,
        errors=problem.errors or (),
        request_id=problem.request_id,
        retry_after=after,
    )


def of_failure(failure: httpx.RequestError) -> PresageError:
    """Return the error of a request that had no answer, or none that can be decoded."""
    code = "connection_failed"
    if isinstance(failure, httpx.TimeoutException):
        code = "timeout"
    elif isinstance(failure, httpx.DecodingError):
        code = "invalid_response"
    return PresageError(code, str(failure) or type(failure).__name__)


def parse_retry_after(header: str | None, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for; None if it is absent or not understood."""
    if not header:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        at = parsedate_to_datetime(header)
        return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now)
    except (ValueError, OverflowError):
        return None
