"""The wallet leaderboard and the page of one wallet."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from api.site.visit import Page, Refusal

if TYPE_CHECKING:
    from api.site.visit import Visit

ADDRESS = re.compile(r"0x[0-9a-f]{40}\Z")
WINDOWS = {"1d": "24 hours", "7d": "7 days", "30d": "30 days", "all": "All time"}
BY = {"volume": "Volume", "window_pnl": "Profit in the window", "pnl": "Profit of positions traded"}
MAX_LEADERS, MAX_FILLS, MAX_ROWS = 50, 50, 100


async def leaderboard(visit: Visit) -> Page:
    """Show the leaderboard, or redirect to the requested wallet."""
    asked = visit.param("address").lower()
    if asked:
        if not ADDRESS.match(asked):
            raise Refusal(400, "Not a wallet address", "Expected 0x and 40 hexadecimal digits.")
        raise Redirect(f"/wallets/{asked}")
    window = visit.choice("window", WINDOWS, "7d")
    by = visit.choice("by", BY, "volume")
    board = await visit.fetch("/v1/leaderboard", window=window, by=by, limit=MAX_LEADERS, max_age_s=10)
    return Page(
        template="wallets",
        title="Wallets",
        description="Wallets ranked by volume and profit, from on-chain settlements.",
        data={"board": board, "window": window, "by": by, "windows": WINDOWS, "ways": BY},
    )


class Redirect(Exception):  # noqa: N818 (a redirect, not an error)
    """A redirect to another page."""

    def __init__(self, to: str) -> None:
        super().__init__(to)
        self.to = to


async def wallet(visit: Visit) -> Page:
    """Show a wallet's trades, positions and profit."""
    address = visit.request.path_params["address"].lower()
    if not ADDRESS.match(address):
        raise Refusal(404, "Not a wallet address", "Expected 0x and 40 hexadecimal digits.")
    of = f"/v1/wallets/{address}"
    summary, pnl, positions, fills = await asyncio.gather(
        visit.fetch(f"{of}/summary", max_age_s=5),
        visit.fetch(f"{of}/pnl", max_age_s=5),
        visit.fetch(f"{of}/positions/open", max_age_s=5),
        visit.fetch(f"{of}/onchain", limit=MAX_FILLS, max_age_s=5),
    )
    named = {
        row["market_id"]: row for row in [*pnl["data"], *positions["data"]] if row["market_id"] and row["question"]
    }
    return Page(
        template="wallet",
        title=f"Wallet {address}",
        description="Profit and loss, open positions and settled trades of a wallet.",
        data={
            "address": address,
            "summary": summary,
            "pnl": pnl,
            "rows": pnl["data"][:MAX_ROWS],
            "positions": positions["data"][:MAX_ROWS],
            "fills": fills["data"],
            "named": named,
        },
    )
