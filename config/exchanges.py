"""The exchanges, and what each of them has: declared here, and read by all that depends on it."""

from __future__ import annotations

from typing import NamedTuple


class Exchange(NamedTuple):
    """An exchange, as `markets.exchange` names it."""

    name: str
    title: str
    """As people write it."""
    market_id: str
    """Pattern of its markets' ids."""
    is_recorded: bool
    """Whether its trades and books are recorded; of the others, the catalogue is all there is."""


POLYMARKET = Exchange("polymarket", "Polymarket", "^0x[0-9a-f]{64}$", is_recorded=True)
KALSHI = Exchange("kalshi", "Kalshi", "^[A-Z0-9.-]{1,200}$", is_recorded=False)

EXCHANGES = {exchange.name: exchange for exchange in (POLYMARKET, KALSHI)}
RECORDED = [exchange.name for exchange in EXCHANGES.values() if exchange.is_recorded]
