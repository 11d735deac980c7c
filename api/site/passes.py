"""Access without a key: signed passes for the data that a page shows, and a daily allowance per address."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from cachetools import LRUCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

STEP_S = 6 * 3600  # a pass, and so the page's ETag, stays the same for this long
VALID_STEPS = 4
SIGNATURE_BYTES, NAME_BYTES = 12, 8  # bytes
MAX_NAMES = 101  # the markets of a page and its chart
DAY_S = 86_400
MAX_ADDRESSES = 50_000
EXPIRY_BYTES = 4


class Passes:
    """Signs the names of what a page shows, so that its scripts can request that and nothing else.

    The first secret signs, any verifies.
    """

    def __init__(self, secrets: Sequence[bytes], clock: Callable[[], float] = time.time) -> None:
        self._secrets, self._clock = secrets, clock

    def write(self, shown: Iterable[str]) -> str:
        """Return a pass for the first MAX_NAMES of the given names."""
        step = int(self._clock()) // STEP_S + VALID_STEPS
        names = b"".join(map(_name, list(dict.fromkeys(shown))[:MAX_NAMES]))
        payload = step.to_bytes(EXPIRY_BYTES, "big") + names
        return base64.urlsafe_b64encode(_sign(self._secrets[0], payload) + payload).decode().rstrip("=")

    def allows(self, text: str, asked: Iterable[str]) -> bool:
        """Return whether a pass is correctly signed, still valid, and covers everything requested."""
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return False
        signature, payload = data[:SIGNATURE_BYTES], data[SIGNATURE_BYTES:]
        if not any(hmac.compare_digest(signature, _sign(secret, payload)) for secret in self._secrets):
            return False
        names = payload[EXPIRY_BYTES:]
        shown = {names[at : at + NAME_BYTES] for at in range(0, len(names), NAME_BYTES)}
        in_time = int.from_bytes(payload[:EXPIRY_BYTES], "big") >= int(self._clock()) // STEP_S
        return in_time and all(_name(each) in shown for each in asked)


class Allowance:
    """Counts the units served to an address per UTC day, up to a limit; an IPv6 /64 counts as one address."""

    def __init__(self, a_day: int, clock: Callable[[], float] = time.time) -> None:
        self._a_day, self._clock = a_day, clock
        self._used: LRUCache[tuple[int, str], int] = LRUCache(MAX_ADDRESSES)  # by day and address

    def take(self, address: str, units: int) -> float:
        """Charge units; return 0 if allowed, else the seconds until the next day."""
        day, since = divmod(int(self._clock()), DAY_S)
        place = day, _block(address)
        used = self._used.get(place, 0)
        if used + units > self._a_day:
            return float(DAY_S - since)
        self._used[place] = used + units
        return 0.0


def _sign(secret: bytes, payload: bytes) -> bytes:
    return hmac.digest(secret, payload, "sha256")[:SIGNATURE_BYTES]


def _name(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=NAME_BYTES).digest()


def _block(address: str) -> str:
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    return address if ip.version == 4 else str(ip_network((ip, 64), strict=False))
