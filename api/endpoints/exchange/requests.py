"""What endpoints that pass on the exchange's answers can be asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from api.errors import Problem
from api.schemas.requests import Exchange, Parameters, Wallet, fields, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_OTHERS = 20
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_\[\]]{0,49}\Z")
LONGEST = 500


class EventsOf(Parameters, frozen=True, kw_only=True):
    """Events as the exchange lists them. Its other parameters are passed on."""

    exchange: Exchange = "polymarket"
    limit: Annotated[int, Meta(ge=1, le=500, description="Events in one answer")] = 100
    offset: Annotated[int, Meta(ge=0, le=1_000_000, description="Events to pass over")] = 0
    active: Annotated[bool | None, Meta(description="Only events that are, or are not, active")] = None
    closed: Annotated[bool | None, Meta(description="Only events that are, or are not, closed")] = None


class AnyEventsOf(EventsOf, frozen=True, kw_only=True):
    """The same with what is passed on."""

    others: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> AnyEventsOf:
        """Check what is known, and bound what is not."""
        known = fields(EventsOf)
        ours = parse(EventsOf, {name: value for name, value in given.items() if name in known})
        others = []
        for name, value in given.items():
            if name in known:
                continue
            values = value if isinstance(value, list) else [value]
            if not NAME.match(name) or any(len(each) > LONGEST or "\0" in each for each in values):
                raise Problem(
                    "invalid_parameter",
                    f"`{name[:50]}` cannot be passed on to the exchange".replace("\0", ""),
                    hint=f"A name of letters, digits and _, a value of up to {LONGEST} characters",
                )
            others += [(name, each) for each in values]
        if len(others) > MOST_OTHERS:
            raise Problem("invalid_parameter", f"More than {MOST_OTHERS} parameters are passed on to the exchange")
        return cls(
            exchange=ours.exchange,
            limit=ours.limit,
            offset=ours.offset,
            active=ours.active,
            closed=ours.closed,
            others=tuple(others),
        )


class OfWallet(Parameters, frozen=True, kw_only=True):
    """What a wallet holds or held."""

    wallet: Annotated[Wallet, Meta(description="The wallet's full address", examples=["0x" + "5d" * 20])]


class InMarket(Parameters, frozen=True, kw_only=True):
    """Who holds something in a market."""

    wallet: Annotated[Wallet | None, Meta(description="Only this wallet, by its full address")] = None
