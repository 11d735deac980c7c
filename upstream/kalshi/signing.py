"""Signed requests: an API key read from a file, and the three headers made with it.

The signed text is the time in ms, the method and the path without host and query:
`1781159475901GET/trade-api/v2/portfolio/balance`. RSA keys sign by PSS with SHA-256 and a salt of 32 bytes, Ed25519
keys as they are. The exchange takes times that are some seconds off, and refuses others.
"""

from __future__ import annotations

import base64
import os
import stat
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import httpx
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from upstream.transport.errors import Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

PrivateKey = RSAPrivateKey | Ed25519PrivateKey

MAX_KEY_FILE = 64 << 10  # bytes: an RSA key of 16,384 bits has 13,000
SALT = 32  # bytes
MAX_SKEW_S = 5.0
"""The clock is set by the exchange's only beyond this: its dates are whole seconds, and under way for a while."""
MISSING = "Kalshi needs an API key for this: set PRESAGE_KALSHI_KEY_ID and PRESAGE_KALSHI_PRIVATE_KEY_FILE"
_PSS = PSS(MGF1(hashes.SHA256()), SALT)


class Signer:
    """Signs requests with one key, by a clock that is set by the exchange's when it refuses ours."""

    def __init__(self, key_id: str, key: PrivateKey, *, wall: Callable[[], float] = time.time) -> None:
        self.skew_s = 0.0
        """Seconds that the exchange's clock is ahead of ours, as far as it refused ours."""
        self._key_id = key_id
        self._key = key
        self._wall = wall

    def headers(self, method: str, path: str) -> dict[str, str]:
        """Return the headers that sign one request, now; `path` has no query."""
        at = str(int((self._wall() + self.skew_s) * 1000))
        text = f"{at}{method}{path}".encode()
        signature = (
            self._key.sign(text)
            if isinstance(self._key, Ed25519PrivateKey)
            else self._key.sign(text, _PSS, hashes.SHA256())
        )
        return {
            "KALSHI-ACCESS-KEY": self._key_id,
            "KALSHI-ACCESS-TIMESTAMP": at,
            "KALSHI-ACCESS-SIGNATURE": base64.b64encode(signature).decode(),
        }

    def resync(self, date: str | None) -> bool:
        """Set the clock by a response's `Date` header; return whether it was off, so that signing again may help."""
        try:
            theirs = parsedate_to_datetime(date or "").timestamp()
        except (ValueError, OverflowError):
            return False
        if abs(theirs - self._wall() - self.skew_s) <= MAX_SKEW_S:
            return False
        self.skew_s = theirs - self._wall()
        return True


class SignedRequest(httpx.Auth):
    """httpx's authentication: each attempt has a signature of its own, and is repeated once if the clock was off."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign; after a 401 by another clock than ours, sign again."""
        request.headers.update(self._signer.headers(request.method, request.url.path))
        response = yield request
        if response.status_code == 401 and self._signer.resync(response.headers.get("date")):
            request.headers.update(self._signer.headers(request.method, request.url.path))
            yield request


def read_signer(key_id: str | None, key_file: Path | None, *, wall: Callable[[], float] = time.time) -> Signer | None:
    """Return a signer by two settings, None if neither is set; Unauthenticated says what is wrong with them."""
    if not key_id and key_file is None:
        return None
    if not key_id:
        raise Unauthenticated("PRESAGE_KALSHI_PRIVATE_KEY_FILE is set, but not PRESAGE_KALSHI_KEY_ID")
    if key_file is None:
        raise Unauthenticated("PRESAGE_KALSHI_KEY_ID is set, but not PRESAGE_KALSHI_PRIVATE_KEY_FILE")
    if not (key_id.isascii() and key_id.isprintable() and " " not in key_id):
        raise Unauthenticated("PRESAGE_KALSHI_KEY_ID is not a key's id: letters, digits and - are all it has")
    return Signer(key_id, _private_key(key_file), wall=wall)


def _private_key(file: Path) -> PrivateKey:
    """Read and check a key file; errors name the file and never say what is in it."""
    try:
        with open(file, "rb", opener=_without_blocking) as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unauthenticated(f"Kalshi's private key {file} is not a file")
            if status.st_mode & stat.S_IRWXO:
                raise Unauthenticated(f"Kalshi's private key {file} is open to every user: chmod o= it")
            text = opened.read(MAX_KEY_FILE + 1)
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or "not a path"
        raise Unauthenticated(f"Kalshi's private key {file} cannot be read: {reason}") from None
    if len(text) > MAX_KEY_FILE:
        raise Unauthenticated(f"Kalshi's private key {file} is too large for a key")
    try:
        key = load_pem_private_key(text, password=None)
    except TypeError:
        raise Unauthenticated(f"Kalshi's private key {file} is encrypted: store it without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise Unauthenticated(f"Kalshi's private key {file} is not a private key in PEM format") from None
    if not isinstance(key, PrivateKey):
        raise Unauthenticated(f"Kalshi's private key {file} is neither an RSA nor an Ed25519 key")
    return key


def _without_blocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe would wait for a writer
