"""Records of trades' endpoints."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from api.schemas.records import Trade

Wallet = Annotated[str, Meta(examples=["0x" + "5d" * 20])]


class RecentTrade(Trade):
    """A trade, and who made it. Without a settlement on the chain the wallets are not known, and empty."""

    maker: Wallet
    """Of several, the one of the largest part."""
    taker: Wallet
    makers: list[Wallet]
    """Every wallet that the taker met, in the order of the match."""
    block_number: int | None
