"""API keys, and the signatures of requests: RSA-PSS with SHA-256, or Ed25519."""

from __future__ import annotations

import base64
import binascii
import time
import uuid
from typing import TYPE_CHECKING, Any, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PublicKey: TypeAlias = rsa.RSAPublicKey | ed25519.Ed25519PublicKey

WINDOW_MS = 20_000  # of a request's clock and ours; the exchange took 10 s and refused 30
MAX_KEYS = 1_000
PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=32)


class KeyRing:
    """The keys that are known, and the check of signatures made with them."""

    def __init__(self, keys: Mapping[str, PublicKey], clock: Callable[[], float] = time.time) -> None:
        self._keys = dict(keys)
        self._clock = clock

    def create(self, kind: str) -> dict[str, str]:
        """Make a key pair, register it, and return its id and its private key as PEM; ValueError for another kind."""
        private: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
        if kind == "rsa":
            private = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        elif kind == "ed25519":
            private = ed25519.Ed25519PrivateKey.generate()
        else:
            raise ValueError("kind is rsa or ed25519")
        if len(self._keys) >= MAX_KEYS:
            raise ValueError(f"there are {MAX_KEYS} keys already")
        key_id = str(uuid.uuid4())
        self._keys[key_id] = private.public_key()
        pem = private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return {"api_key_id": key_id, "private_key": pem.decode()}

    def knows(self, key_id: str) -> bool:
        """Return whether a key is known."""
        return key_id in self._keys

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> dict[str, Any] | None:
        """Return the body of the 401 that refuses a request; None for a signature that is right."""
        key_id, signature = headers.get("kalshi-access-key"), headers.get("kalshi-access-signature")
        timestamp = headers.get("kalshi-access-timestamp", "")
        if not key_id and not signature and not timestamp:
            return denied("token_authentication_failure")
        if not signature:
            return denied("signature_is_missing_from_headers")
        late_ms = abs(int(timestamp) - self._clock() * 1000) if timestamp.isdecimal() and len(timestamp) < 16 else None
        if late_ms is None or late_ms > WINDOW_MS:
            return denied("header_timestamp_expired")
        key = self._keys.get(key_id or "")
        if key is None:
            return denied("authentication_error", "NOT_FOUND")
        return None if _is_signed(key, signature, f"{timestamp}{method}{path}".encode()) else INCORRECT


def denied(code: str, details: str = "") -> dict[str, Any]:
    """Return the body of a 401."""
    error = {"code": code, "message": code}
    return {"error": error | {"details": details} if details else error}


INCORRECT = denied("authentication_error", "INCORRECT_API_KEY_SIGNATURE")


def public_key(pem: bytes) -> PublicKey:
    """Parse a public key; ValueError if it is none that Kalshi accepts."""
    key = serialization.load_pem_public_key(pem)
    if not isinstance(key, rsa.RSAPublicKey | ed25519.Ed25519PublicKey):
        raise ValueError("neither an RSA nor an Ed25519 key")  # noqa: TRY004 - the value is a file's
    return key


def _is_signed(key: PublicKey, signature: str, text: bytes) -> bool:
    try:
        given = base64.b64decode(signature, validate=True)
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(given, text, PSS, hashes.SHA256())
        else:
            key.verify(given, text)
    except (binascii.Error, ValueError, InvalidSignature):
        return False
    return True
