"""Makes an exchange's client by the settings, or by a Dagster resource, which has the same addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from config import settings
from config.exchanges import EXCHANGES, KALSHI, POLYMARKET
from orchestration.ingest.exchanges.polymarket import PolymarketClient
from upstream.transport.errors import Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Callable

    from config.exchanges import Exchange
    from config.settings import Settings
    from orchestration.ingest.exchanges.base import ExchangeClient
    from orchestration.resources import Exchange as ExchangeResource
    from upstream.kalshi.signing import Signer


def client_of(exchange: Exchange, at: Settings | ExchangeResource) -> ExchangeClient:
    """Return an exchange's client; Unauthenticated if the settings name a key that cannot be used."""
    return _WAYS[exchange.name].client(at)


def kalshi_signer() -> Signer | None:
    """Return what signs requests to Kalshi by the settings; None without a key."""
    from upstream.kalshi.signing import read_signer  # noqa: PLC0415 (cryptography takes 8 MB)

    configured = settings.get()
    key_id = configured.kalshi_key_id
    return read_signer(key_id.get_secret_value() if key_id else None, configured.kalshi_private_key_file)


def recorded_exchanges(configured: Settings) -> list[Exchange]:
    """Return the exchanges that are recorded by these settings."""
    return [each for each in EXCHANGES.values() if not obstacle(each, configured)]


def obstacle(exchange: Exchange, configured: Settings) -> str:
    """Return why an exchange is not recorded; empty if it is."""
    if exchange.name not in configured.exchange_names:
        return f"{exchange.title} is not configured: add {exchange.name} to PRESAGE_EXCHANGES"
    return _WAYS[exchange.name].missing()


class _Way(NamedTuple):
    """How to read an exchange."""

    client: Callable[[Settings | ExchangeResource], ExchangeClient]
    missing: Callable[[], str]
    """Says what its live feed lacks; empty: nothing."""


def _polymarket(at: Settings | ExchangeResource) -> ExchangeClient:
    return PolymarketClient(at.gamma_url, at.clob_url, at.clob_socket_url, at.data_api_url, at.source)


def _kalshi(at: Settings | ExchangeResource) -> ExchangeClient:
    from orchestration.ingest.exchanges.kalshi import KalshiClient  # noqa: PLC0415 (brings cryptography along)

    return KalshiClient(at.kalshi_url, at.kalshi_socket_url, kalshi_signer(), at.source)


def _missing_key() -> str:
    from upstream.kalshi.signing import MISSING  # noqa: PLC0415 (brings cryptography along)

    try:
        return "" if kalshi_signer() else MISSING
    except Unauthenticated as fault:
        return str(fault)


_WAYS = {POLYMARKET.name: _Way(_polymarket, str), KALSHI.name: _Way(_kalshi, _missing_key)}
