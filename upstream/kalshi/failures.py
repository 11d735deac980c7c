"""Errors of the exchange over HTTP, in the three formats that it uses, and a fourth of its rate limit."""

from __future__ import annotations

import msgspec

from upstream.transport.errors import FAULTS

MAX_TEXT = 300  # characters
CLOCK = "header_timestamp_expired"
"""Code of a refused signature that was made by a wrong clock."""


class ApiFailure(msgspec.Struct, frozen=True):
    """What the exchange says about a refused request; each part may be ""."""

    code: str = ""
    message: str = ""
    details: str = ""

    def __str__(self) -> str:
        return ": ".join(dict.fromkeys(part for part in (self.code, self.message, self.details) if part))[:MAX_TEXT]


class _Sent(msgspec.Struct):
    """Nested: {"error":{"code":"authentication_error","message":"authentication_error","details":"NOT_FOUND"}}
    Flat: {"code":"invalid_parameters","message":"invalid parameters","details":"…"}
    Of parameters: {"msg":"Invalid format for parameter limit: …"}
    Of the rate limit: {"error":"too many requests"}
    """  # noqa: D205

    error: ApiFailure | str | None = None
    msg: str | None = None
    code: str = ""
    message: str = ""
    details: str = ""


_sent = msgspec.json.Decoder(_Sent)


def failure(body: bytes) -> ApiFailure | None:
    """Parse an error's body; None if it has none of the formats, as a proxy's HTML."""
    try:
        sent = _sent.decode(body)
    except FAULTS:
        return None
    if isinstance(sent.error, ApiFailure):
        return sent.error
    found = ApiFailure(sent.code, sent.error or sent.msg or sent.message, sent.details)
    return found if str(found) else None
