"""Pagination cursors, signed with HMAC so that clients cannot forge them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import math
import time
from typing import TYPE_CHECKING, TypeVar

import msgspec

from api.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
SIGNATURE = 12  # bytes
FETCH_EVERY_S, FETCH_PAUSE_S = 60.0, 1.0


class Cursors:
    """Encodes and verifies cursors. The secrets, newest first, are fetched on first use and again each minute.

    The first signs, any verifies: cursors stay valid when the secret is rotated. One that another process has signed
    with a secret that is newer than ours has us fetch them at once, but not each time that somebody forges one.
    """

    def __init__(self, secrets: Callable[[], Sequence[bytes]], clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch, self._clock = secrets, clock
        self._known: Sequence[bytes] = ()
        self._fetched_at = -math.inf

    def write(self, position: msgspec.Struct) -> str:
        """Encode a position as opaque text."""
        payload = msgspec.msgpack.encode(position)
        signature = _sign(self._secrets(FETCH_EVERY_S)[0], payload)
        return base64.urlsafe_b64encode(signature + payload).decode().rstrip("=")

    def read(self, text: str, kind: type[T]) -> T:
        """Decode a position; raise a Problem if the signature is not ours."""
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            signature, payload = data[:SIGNATURE], data[SIGNATURE:]
            if not (self._signed(signature, payload, FETCH_EVERY_S) or self._signed(signature, payload, FETCH_PAUSE_S)):
                raise invalid()
            return msgspec.msgpack.decode(payload, type=kind)
        except (binascii.Error, ValueError, msgspec.DecodeError):
            raise invalid() from None

    def _signed(self, signature: bytes, payload: bytes, max_age_s: float) -> bool:
        return any(hmac.compare_digest(signature, _sign(secret, payload)) for secret in self._secrets(max_age_s))

    def _secrets(self, max_age_s: float) -> Sequence[bytes]:
        if self._clock() - self._fetched_at >= max_age_s:
            self._known, self._fetched_at = self._fetch(), self._clock()
        return self._known


def _sign(secret: bytes, payload: bytes) -> bytes:
    return hmac.digest(secret, payload, "sha256")[:SIGNATURE]


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
