"""The exchanges, and what each of them has: declared here, and read by all that depends on it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class Exchange(NamedTuple):
    """An exchange, as `markets.exchange` names it."""

    name: str
    title: str
    """As people write it."""
    market_id: str
    """Pattern of its markets' ids."""
    socket_source: str
    """What quarantine calls its socket."""
    trades_source: str
    """What gaps call its list of trades, by which they are filled."""
    is_sequenced: bool
    """Whether its messages are numbered: the order of arrival counts, and books come over the socket alone."""
    has_chain: bool
    """Whether its trades are settled on a chain that is indexed."""
    has_complements: bool
    """Whether all trades are listed as of the first of two outcomes; the other's price is the rest of a dollar."""
    has_trade_ids: bool
    """Whether its trades have ids; otherwise they are told apart by their transactions, or by what they say."""

    def own(self, name: str) -> str:
        """Return the name of what each exchange has one of: a job, a stage, a setting. Polymarket's have no suffix.

        >>> POLYMARKET.own("ingestion"), KALSHI.own("ingestion")
        ('ingestion', 'ingestion_kalshi')
        """
        return name if self.is_default else f"{name}_{self.name}"

    @property
    def is_default(self) -> bool:
        """Whether it is meant where no exchange is named. It cannot be turned off."""
        return self.name == DEFAULT.name


POLYMARKET = Exchange(
    "polymarket",
    "Polymarket",
    "^0x[0-9a-f]{64}$",
    "market_socket",
    "data_api",
    is_sequenced=False,
    has_chain=True,
    has_complements=False,
    has_trade_ids=False,
)
KALSHI = Exchange(
    "kalshi",
    "Kalshi",
    "^[A-Z0-9.-]{1,200}$",
    "kalshi_socket",
    "kalshi",
    is_sequenced=True,
    has_chain=False,
    has_complements=True,
    has_trade_ids=True,
)

DEFAULT = POLYMARKET
EXCHANGES = {exchange.name: exchange for exchange in (POLYMARKET, KALSHI)}


@lru_cache(maxsize=1 << 16)
def exchange_of(market_id: str) -> str:
    """Return the name of the exchange whose ids look like this one; of none, that of what was there before others.

    >>> exchange_of("0x" + "1" * 64), exchange_of("KXFED-27APR-T4.25"), exchange_of("rain")
    ('polymarket', 'kalshi', 'polymarket')
    """
    found = (each.name for each in EXCHANGES.values() if re.fullmatch(each.market_id[1:-1], market_id))
    return next(found, DEFAULT.name)
