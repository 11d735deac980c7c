"""Keys made for the tests, and a check of what was signed with them."""

import base64
import functools
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa

from upstream.kalshi.signing import PrivateKey

KEY_ID = "a952bcbe-ec3b-4b5b-b8f9-11dae589608c"


@functools.cache
def private_key(kind: str) -> PrivateKey:
    if kind == "rsa":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ed25519.Ed25519PrivateKey.generate()


def pem(key, form=serialization.PrivateFormat.PKCS8, password: bytes | None = None) -> bytes:
    hidden = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, hidden)


def stored(folder: Path, text: bytes, mode: int = 0o600) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "kalshi.pem"
    file.write_bytes(text)
    file.chmod(mode)
    return file


def verify(key: PrivateKey, headers, method: str, path: str) -> int:
    """Raise InvalidSignature unless these headers sign the request; return their time in ms."""
    at = headers["KALSHI-ACCESS-TIMESTAMP"]
    text = f"{at}{method}{path}".encode()
    signature = base64.b64decode(headers["KALSHI-ACCESS-SIGNATURE"], validate=True)
    assert headers["KALSHI-ACCESS-KEY"] == KEY_ID
    if isinstance(key, rsa.RSAPrivateKey):
        pss = padding.PSS(padding.MGF1(hashes.SHA256()), salt_length=32)
        key.public_key().verify(signature, text, pss, hashes.SHA256())
    else:
        key.public_key().verify(signature, text)
    return int(at)
