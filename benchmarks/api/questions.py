"""Requests for each endpoint: busy and quiet markets, with filters, and the largest responses."""

from __future__ import annotations

import hashlib
import itertools
import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from api.endpoints.base.endpoint import Endpoint

# From the markets with most trades down to those with one in a fortnight, or none.
RANKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 40_000, 49_999)
DAY = 86_400

# Queries asked in turn besides the plain one. `{now}`, `{ids:N}`, `{id}` are filled in.
QUERY_VARIANTS: dict[str, tuple[str, ...]] = {
    "markets": (
        "",
        "status=RESOLVED",
        "category=category-3",
        "tag=tag-7",
        "series=series-9",
        "offset=500",
        "limit=200",
    ),
    "search_markets": ("q=bitcoin", "q=reaches-77", "q=rain", "q=nothing+like+this", "q=of", "q=gold&status=CLOSED"),
    "top_markets": ("", "by=trades", "period=1h", "period=7d", "by=trades&period=7d"),
    "resolving_markets": ("", "within=1h", "within=7d", "within=7d&offset=200"),
    "new_markets": ("", "hours=168", "hours=168&offset=200"),
    "markets_by_timeframe": ("", "asset=bitcoin", "status=CLOSED", "asset=reaches-77"),
    "compare_markets": ("ids={ids:2}", "ids={ids:10}"),
    "prices": ("ids={ids:5}", "ids={ids:17}"),
    "market_price": ("", "outcome=1"),
    "market_orderbook": ("", "outcome=No"),
    "market_trades": ("", "limit=50", "limit=500", "outcome=1", "from={yesterday_ms}"),
    "market_price_history": ("", "resolution=1s", "resolution=5m", "resolution=1h", "fill=previous"),
    "market_candles": ("", "resolution=60", "from={day_ago}&to={now}"),
    "recent_trades": ("", "limit=100", "market_id={id}"),
    "event_markets": ("", "sort=created", "status=ACTIVE"),
    "category_markets": ("", "sort=resolution", "status=RESOLVED", "offset=500"),
    "market_signals": ("", "type=momentum", "from={yesterday_ms}&limit=500"),
    **dict.fromkeys(
        ("wallet_onchain", "wallet_activity", "wallet_markets"),
        ("", "from={yesterday_ms}", "to={yesterday_ms}", "market_id={id}"),
    ),
    "top_signals": ("", "type=whale_alert"),
    "udf_symbols": ("symbol={id}",),
    "udf_search": ("query=bitcoin", "query=", "query=reaches-77"),
    "udf_history": tuple(
        f"symbol={{id}}&resolution={resolution}&to={{now}}&countback=300" for resolution in ("1", "15", "60", "1D")
    ),
    "udf_quotes": ("symbols={id}", "symbols={ids:10}"),
    "udf_marks": ("symbol={id}&resolution=5&from={day_ago}&to={now}", "symbol={id}&from=0&to={now}"),
    "udf_timescale_marks": ("symbol={id}&from=0&to={now}",),
    "positions": ("wallet={wallet}",),
    "closed_positions": ("wallet={wallet}",),
}
# The largest response that can be requested, where it is much larger than the usual.
LARGEST_QUERIES = {
    "markets": "limit=200&offset=10000",
    "market_trades": "limit=5000",
    "market_price_history": "limit=20000",
    "market_candles": "from=0&to={now}",
    "prices": "ids={ids:100}",
    "markets_by_timeframe": "limit=100",
    "top_signals": "limit=200",
    "recent_trades": "limit=500",
    "udf_history": "symbol={id}&resolution=1&to={now}&countback=20000",
    "udf_quotes": "symbols={ids:50}",
    # For the busiest wallets: the first three endpoints read their whole history.
    **dict.fromkeys(("wallet_summary", "wallet_open_positions", "wallet_pnl"), ""),
    "wallet_markets": "limit=100",
    **dict.fromkeys(("wallet_onchain", "wallet_activity"), "limit=200"),
}
BODIES: dict[str, Callable[[int], object]] = {
    "register": lambda nth: {"app_name": "bench", "email": f"bench-{nth}-{time.time_ns()}@example.com"},
    "watch_wallet": lambda nth: {"address": wallet(nth)},
    # An address, not a name: the figure is ours, not that of the DNS server.
    "create_webhook": lambda nth: {"url": f"https://127.0.0.1/{nth}", "events": ["signal.whale_alert"]},
}
PROXIED = frozenset({"events", "positions", "closed_positions", "market_positions"})  # as slow as the exchange
# Connections; what would revoke the key; and single webhooks and exported days, of which there are none.
NOT_ASKED = frozenset(
    {
        *("stream", "market_channel_replay", "rotate_key", "recover_key", "confirm_mail"),
        *("webhook", "change_webhook", "remove_webhook", "test_webhook", "rotate_webhook_secret"),
        *("verify_webhook", "webhook_deliveries", "redeliver", "export_manifest", "export_file"),
    }
)


def market_id(key: int) -> str:
    """Return the id of a simulated market."""
    return "0x" + hashlib.sha256(f"market {key}".encode()).hexdigest()


def wallet(nth: int) -> str:
    """Return the address of a simulated wallet, the busiest first."""
    return "0x" + hashlib.sha256(f"wallet {nth}".encode()).hexdigest()[:40]


class Question(NamedTuple):
    """A request's line and body."""

    method: str
    path: str
    body: bytes = b""


class Questions:
    """Requests for each endpoint, about some markets and evenly about all wallets."""

    def __init__(self, markets: Sequence[int], wallets: int) -> None:
        self.ids = [market_id(each) for each in markets]
        self.wallets = wallets

    def usual(self, endpoint: Endpoint) -> Iterator[Question]:
        """Yield an endpoint's usual requests in turn."""
        for nth in itertools.count():
            for query in QUERY_VARIANTS.get(endpoint.name, ("",)):
                yield self._question(endpoint, query, nth, wallet(nth * 7919 % self.wallets + 1))

    def largest(self, endpoint: Endpoint) -> Iterator[Question] | None:
        """Yield requests for the largest responses, of the busiest markets and wallets."""
        if endpoint.name not in LARGEST_QUERIES:
            return None
        return (
            self._question(endpoint, LARGEST_QUERIES[endpoint.name], nth % 3, wallet(nth % 3 + 1))
            for nth in itertools.count()
        )

    def _question(self, endpoint: Endpoint, query: str, nth: int, address: str) -> Question:
        path = endpoint.path
        for name in endpoint.path_parameters:
            named = address if name == "address" else self._named(endpoint, name, nth)
            path = path.replace(f"{{{name}}}", named)
        body = BODIES.get(endpoint.name)
        return Question(
            endpoint.method,
            f"{path}?{self._filled(query, nth, address)}" if query else path,
            msgspec.json.encode(body(nth)) if body else b"",
        )

    def _named(self, endpoint: Endpoint, name: str, nth: int) -> str:
        if name == "slug":
            return f"category-{nth % 12}"
        return str(nth * 37 % 10_000) if endpoint.path.startswith("/v1/events/") else self.ids[nth % len(self.ids)]

    def _filled(self, query: str, nth: int, address: str) -> str:
        now = int(time.time())
        for most in (2, 5, 10, 17, 50, 100):
            if f"{{ids:{most}}}" in query:
                turned = (self.ids * 6)[nth % len(self.ids) :]
                several = turned[:most] if most <= len(self.ids) else [market_id(1 + n * 97) for n in range(most)]
                query = query.replace(f"{{ids:{most}}}", ",".join(several))
        return query.format(
            id=self.ids[nth % len(self.ids)],
            now=now,
            day_ago=now - DAY,
            yesterday_ms=(now - DAY) * 1000,
            wallet=address,
        )
