"""Wallets: who trades most, and what one did, holds and has earned."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from api.site.visit import Page, Refusal

if TYPE_CHECKING:
    from api.site.visit import Visit

ADDRESS = re.compile(r"0x[0-9a-f]{40}\Z")
WINDOWS = {"1d": "24 hours", "7d": "7 days", "30d": "30 days", "all": "All time"}
BY = {"volume": "Volume", "window_pnl": "Profit in the window", "pnl": "Profit of what was traded"}
LEADERS, FILLS, ROWS = 50, 50, 100


async def leaderboard(visit: Visit) -> Page:
    """Show who traded or earned most; or go to the wallet that was asked for."""
    asked = visit.given("address").lower()
    if asked:
        if not ADDRESS.match(asked):
            raise Refusal(400, "That is not a wallet's address", "0x and 40 hexadecimal digits.")
        raise Moved(f"/wallets/{asked}")
    window = visit.choice("window", WINDOWS, "7d")
    by = visit.choice("by", BY, "volume")
    board = await visit.ask("/v1/leaderboard", window=window, by=by, limit=LEADERS, fresh_s=10)
    return Page(
        template="wallets",
        title="Wallets",
        description="Who traded and earned most, by the settlements on the chain.",
        data={"board": board, "window": window, "by": by, "windows": WINDOWS, "ways": BY},
    )


class Moved(Exception):  # noqa: N818 (where to go, not a mistake)
    """The page asked for has an address of its own."""

    def __init__(self, to: str) -> None:
        super().__init__(to)
        self.to = to


async def wallet(visit: Visit) -> Page:
    """Show what a wallet did, holds and has earned."""
    address = visit.request.path_params["address"].lower()
    if not ADDRESS.match(address):
        raise Refusal(404, "That is not a wallet's address", "0x and 40 hexadecimal digits.")
    of = f"/v1/wallets/{address}"
    summary, pnl, positions, fills = await asyncio.gather(
        visit.ask(f"{of}/summary", fresh_s=5),
        visit.ask(f"{of}/pnl", fresh_s=5),
        visit.ask(f"{of}/positions/open", fresh_s=5),
        visit.ask(f"{of}/onchain", limit=FILLS, fresh_s=5),
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
            "rows": pnl["data"][:ROWS],
            "positions": positions["data"][:ROWS],
            "fills": fills["data"],
            "named": named,
        },
    )
