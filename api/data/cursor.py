"""Pagination cursors, signed with HMAC so that clients cannot forge them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import TYPE_CHECKING, TypeVar

import msgspec

from api.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
SIGNATURE = 12  # bytes


class Cursors:
    """Encodes and verifies cursors. The secret is fetched on first use."""

    def __init__(self, secret: Callable[[], str]) -> None:
        self._fetch = secret
        self._secret = b""

    def write(self, position: msgspec.Struct) -> str:
        """Encode a position as opaque text."""
        payload = msgspec.msgpack.encode(position)
        return base64.urlsafe_b64encode(self._sign(payload) + payload).decode().rstrip("=")

    def read(self, text: str, kind: type[T]) -> T:
        """Decode a position; raise a Problem if the signature is not ours."""
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            signature, payload = data[:SIGNATURE], data[SIGNATURE:]
            if not hmac.compare_digest(signature, self._sign(payload)):
                raise invalid()
            return msgspec.msgpack.decode(payload, type=kind)
        except (binascii.Error, ValueError, msgspec.DecodeError):
            raise invalid() from None

    def _sign(self, payload: bytes) -> bytes:
        self._secret = self._secret or self._fetch().encode()
        return hmac.digest(self._secret, payload, "sha256")[:SIGNATURE]


def digest(value: msgspec.Struct) -> bytes:
    """Return a short digest of a filter, to check that a cursor is used with the filter it was made for."""
    return hashlib.blake2b(msgspec.msgpack.encode(value), digest_size=6).digest()


def invalid(detail: str = "It was not issued by this service, or was modified") -> Problem:
    """Return the Problem for an invalid cursor."""
    return Problem(
        "invalid_cursor",
        detail,
        hint="Start again without a cursor, then pass `next_cursor` unchanged",
        errors=[{"name": "cursor", "detail": detail}],
    )
