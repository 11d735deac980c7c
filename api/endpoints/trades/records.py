"""Responses of the trade endpoints. The JSON is built by `sql/queries/trades.sql`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from api.schemas.records import Trade

Wallet = Annotated[str, Meta(examples=["0x" + "5d" * 20])]


class RecentTrade(Trade):
    """A trade with its wallets, which are empty until the trade is settled on the chain."""

    maker: Wallet
    """If there are several, the one with the largest share."""
    taker: Wallet
    makers: list[Wallet]
    """Every wallet that the taker was matched with, in order."""
    block_number: int | None
