"""ASGI middleware: signatures of account endpoints, and token buckets, beyond which a request gets 429."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers

from upstream.sandbox.common.answers import answer
from upstream.sandbox.kalshi.signatures import INCORRECT

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from upstream.sandbox.kalshi.faults import KalshiFaults
    from upstream.sandbox.kalshi.signatures import KeyRing

REST = "/trade-api/v2"
SIGNED = (f"{REST}/account/", f"{REST}/portfolio/")
DEFAULT_COST = 10  # tokens a request
MAX_BUCKETS = 10_000


@dataclass(frozen=True)
class Tier:
    """A usage tier: tokens a second for reads and writes, and how many seconds' tokens the read bucket holds."""

    name: str
    read: int
    write: int
    burst: int = 1


TIERS = {
    tier.name: tier
    for tier in (
        Tier("basic", 200, 100, 2),
        Tier("advanced", 300, 300, 2),
        Tier("expert", 600, 600),
        Tier("premier", 1_200, 1_200),
        Tier("paragon", 2_400, 2_400),
        Tier("prime", 4_800, 4_800),
        Tier("prestige", 12_000, 9_600),
    )
}


def tier_json(tier: Tier) -> dict[str, Any]:
    """Return a tier as `/account/limits` shows it."""
    return {
        "usage_tier": tier.name,
        "read": {"refill_rate": tier.read, "bucket_capacity": tier.read * tier.burst},
        "write": {"refill_rate": tier.write, "bucket_capacity": tier.write},
        "grants": [],
    }


def too_many_requests(_retry_after_s: float = 0) -> Response:
    """Return the refusal of a request beyond a limit, which does not say when to try again."""
    return answer({"error": "too many requests"}, 429)


class Gate:
    """Refuses requests without tokens, and unsigned ones of an account. Without a tier nothing is counted."""

    def __init__(
        self,
        app: ASGIApp,
        tier: Tier | None,
        keys: KeyRing,
        faults: KalshiFaults,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app, self._tier, self._keys, self._faults, self._clock = app, tier, keys, faults, clock
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens, and when there were so many
        self.counts = Counter({"answered": 0, "refused": 0, "unauthorized": 0})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(REST):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            self.counts["unauthorized"] += 1
            await answer(refusal, 401)(scope, receive, send)
        elif not self._takes(headers, scope):
            self.counts["refused"] += 1
            await too_many_requests()(scope, receive, send)
        else:
            self.counts["answered"] += 1
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> dict[str, Any] | None:
        if headers.get("kalshi-access-key") and self._faults.of_kind("reject_signature") is not None:
            return INCORRECT
        if not scope["path"].startswith(SIGNED):
            return None
        return self._keys.refusal(scope["method"], scope["path"], headers)

    def _takes(self, headers: Headers, scope: Scope) -> bool:
        """Take a request's tokens from the bucket of its key, or of its address; False if there are too few."""
        if self._tier is None:
            return True
        key_id = headers.get("kalshi-access-key", "")
        owner = key_id if self._keys.knows(key_id) else (scope.get("client") or ("",))[0]
        now, capacity = self._clock(), float(self._tier.read * self._tier.burst)
        tokens, at = self._buckets.get(owner, (capacity, now))
        tokens = min(capacity, tokens + (now - at) * self._tier.read)
        enough = tokens >= DEFAULT_COST
        if len(self._buckets) >= MAX_BUCKETS:
            self._buckets.clear()
        self._buckets[owner] = (tokens - DEFAULT_COST if enough else tokens), now
        return enough
