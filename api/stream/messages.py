"""What is said on the stream beside the events: the client's wishes and our answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from api.schemas.requests import Sequence, Wallet

Type = Literal["trade", "orderbook", "price", "market", "signal", "wallet_activity", "onchain_trade"]
MOST_MARKETS = 5000  # of one connection
MOST_WALLETS = 1000  # of one connection
MOST_FOLLOWED = 5000  # wallets of one account, within a day

MarketNames = Annotated[list[Annotated[str, Meta(min_length=1, max_length=500)]], Meta(max_length=MOST_MARKETS)]
# The length as well: to the pattern a newline may follow the end.
Wallets = Annotated[list[Wallet], Meta(max_length=MOST_WALLETS)]


class Subscribe(Struct, tag_field="action", tag="subscribe", forbid_unknown_fields=True):
    """Limit delivery to markets and types, or add to those; and begin after an event, with what was missed since."""

    markets: MarketNames | None = None
    types: list[Type] | None = None
    resume_from: Sequence | None = None


class Unsubscribe(Struct, tag_field="action", tag="unsubscribe", forbid_unknown_fields=True):
    """No more of these markets, or of any."""

    markets: MarketNames | None = None


class SubscribeWallet(Struct, tag_field="action", tag="subscribe_wallet", forbid_unknown_fields=True):
    """What these wallets do, beside all else that is wanted and in whatever market."""

    wallets: Annotated[Wallets, Meta(min_length=1)]


class UnsubscribeWallet(Struct, tag_field="action", tag="unsubscribe_wallet", forbid_unknown_fields=True):
    """No more of these wallets, or of any that were subscribed to."""

    wallets: Wallets | None = None


class Ping(Struct, tag_field="action", tag="ping"):
    """Ask for a pong."""


Wish = Subscribe | Unsubscribe | SubscribeWallet | UnsubscribeWallet | Ping
read = msgspec.json.Decoder(Wish).decode


def say(kind: str, **said: Any) -> bytes:
    """Write a message that is not an event."""
    return msgspec.json.encode({"type": kind, **said})


def error(code: str, detail: str) -> bytes:
    """Write an error; the connection stays."""
    return say("error", code=code, detail=detail)
