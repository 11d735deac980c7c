"""Stream messages other than events: client commands and control messages."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from api.schemas.requests import Exchange, Sequence, Wallet

Type = Literal["trade", "orderbook", "price", "market", "signal", "wallet_activity", "onchain_trade"]
MAX_MARKETS = 5000  # per connection
MAX_WALLETS = 1000  # per connection
MAX_FOLLOWED = 5000  # wallets per account and day

MarketNames = Annotated[list[Annotated[str, Meta(min_length=1, max_length=500)]], Meta(max_length=MAX_MARKETS)]
# Bounded in length as well, since the pattern accepts a trailing newline.
Wallets = Annotated[list[Wallet], Meta(max_length=MAX_WALLETS)]


class Subscribe(Struct, tag_field="action", tag="subscribe", forbid_unknown_fields=True):
    """Limit delivery to markets and types, or add to them; optionally resume after a seq."""

    markets: MarketNames | None = None
    types: list[Type] | None = None
    exchange: Exchange | None = None
    resume_from: Sequence | None = None


class Unsubscribe(Struct, tag_field="action", tag="unsubscribe", forbid_unknown_fields=True):
    """Stop delivery of these markets, or of all."""

    markets: MarketNames | None = None


class SubscribeWallet(Struct, tag_field="action", tag="subscribe_wallet", forbid_unknown_fields=True):
    """Deliver these wallets' activity in all markets, in addition to the other subscriptions."""

    wallets: Annotated[Wallets, Meta(min_length=1)]


class UnsubscribeWallet(Struct, tag_field="action", tag="unsubscribe_wallet", forbid_unknown_fields=True):
    """Stop delivery of these wallets, or of all subscribed ones."""

    wallets: Wallets | None = None


class Ping(Struct, tag_field="action", tag="ping"):
    """Request a pong."""


Command = Subscribe | Unsubscribe | SubscribeWallet | UnsubscribeWallet | Ping
decode = msgspec.json.Decoder(Command).decode


def encode(kind: str, **said: Any) -> bytes:
    """Encode a message that is not an event."""
    return msgspec.json.encode({"type": kind, **said})


def error(code: str, detail: str) -> bytes:
    """Encode an error message; the connection stays open."""
    return encode("error", code=code, detail=detail)
