"""Requests to the REST API: limits, language, signatures, and what is refused."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from upstream.kalshi.failures import failure
from upstream.kalshi.fields import ticker as checked_ticker
from upstream.kalshi.signing import MISSING, SignedRequest, Signer
from upstream.transport.errors import RefusedObject, Rejected, Unauthenticated, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import msgspec

    from upstream.transport.http import Client, Value

URL = "https://external-api.kalshi.com/trade-api/v2"
LIMITS = {"": 200}
"""Requests in ten seconds: those of the lowest tier, as none are published for requests without a key."""
ENGLISH = {"Accept-Language": "en"}
"""Titles and rules come translated otherwise."""

SOURCE = "kalshi"

T = TypeVar("T")


class Requests:
    """Sends requests, and tells `on_refused` what could not be read; base of the client of each topic."""

    def __init__(
        self,
        client: Client,
        url: str = URL,
        *,
        signer: Signer | None = None,
        on_refused: Callable[[RefusedObject], None] | None = None,
    ) -> None:
        self.client = client
        self.url = url.rstrip("/")
        self._signer = signer
        self._on_refused = on_refused
        client.limits.declare(self.url, LIMITS)

    def _get(
        self,
        path: str,
        decoder: msgspec.json.Decoder[T],
        params: dict[str, Value] | None = None,
        *,
        signed: bool = False,
        **how: Any,
    ) -> T:
        if signed:
            if self._signer is None:
                raise Unauthenticated(f"{path}: {MISSING}")
            how["auth"] = SignedRequest(self._signer)
        try:
            return self.client.get(f"{self.url}{path}", decoder, params, headers=ENGLISH, **how)
        except Rejected as fault:
            said = f"{path}: {fault.status} {failure(fault.body) or fault}"
            if fault.status == HTTPStatus.UNAUTHORIZED:
                raise Unauthenticated(said) from fault
            raise Rejected(said, fault.status) from fault

    def _refuse(self, reason: str, piece: msgspec.Raw | bytes) -> None:
        self._report([refused(SOURCE, reason, bytes(piece))])

    def _report(self, refusals: Iterable[RefusedObject]) -> None:
        for refusal in refusals:
            if self._on_refused is not None:
                self._on_refused(refusal)


def asked(ticker: str) -> str:
    """Return a ticker to ask for; Rejected if it cannot be one."""
    try:
        return checked_ticker(ticker)
    except ValueError as fault:
        raise Rejected(str(fault), 0) from fault


def same(found: str, asked: str) -> None:
    """Raise ValueError if the exchange sent another object than was asked for."""
    if found != asked:
        raise ValueError(f"another one than {asked} was sent: {found!r:.80}")
