"""Parameters of the endpoints that forward requests to the exchange."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from api.errors import Problem
from api.schemas.requests import Parameters, Wallet, fields, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_OTHERS = 20
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_\[\]]{0,49}\Z")
MAX_VALUE_LENGTH = 500


class EventParameters(Parameters, frozen=True, kw_only=True):
    """Events as the exchange lists them. Other parameters are forwarded."""

    exchange: Annotated[Literal["polymarket"], Meta(description="The exchange that is asked")] = "polymarket"
    limit: Annotated[int, Meta(ge=1, le=500, description="Maximum number of events in the response")] = 100
    offset: Annotated[int, Meta(ge=0, le=1_000_000, description="Number of events to skip")] = 0
    active: Annotated[bool | None, Meta(description="Only events that are (true) or are not (false) active")] = None
    closed: Annotated[bool | None, Meta(description="Only events that are (true) or are not (false) closed")] = None


class ForwardedEventParameters(EventParameters, frozen=True, kw_only=True):
    """Event parameters, with those that are forwarded."""

    others: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> ForwardedEventParameters:
        """Validate known parameters; bound the number and size of the others."""
        known = fields(EventParameters)
        ours = parse(EventParameters, {name: value for name, value in given.items() if name in known})
        others = []
        for name, value in given.items():
            if name in known:
                continue
            values = value if isinstance(value, list) else [value]
            if not NAME.match(name) or any(len(each) > MAX_VALUE_LENGTH or "\0" in each for each in values):
                raise Problem(
                    "invalid_parameter",
                    f"`{name[:50]}` cannot be forwarded to the exchange".replace("\0", ""),
                    hint=f"Names may have letters, digits and _; values up to {MAX_VALUE_LENGTH} characters",
                )
            others += [(name, each) for each in values]
        if len(others) > MAX_OTHERS:
            raise Problem("invalid_parameter", f"More than {MAX_OTHERS} parameters would be forwarded to the exchange")
        return cls(
            exchange=ours.exchange,
            limit=ours.limit,
            offset=ours.offset,
            active=ours.active,
            closed=ours.closed,
            others=tuple(others),
        )


class PositionParameters(Parameters, frozen=True, kw_only=True):
    """Positions of a wallet."""

    wallet: Annotated[Wallet, Meta(description="The wallet's full address", examples=["0x" + "5d" * 20])]


class MarketPositionParameters(Parameters, frozen=True, kw_only=True):
    """Positions in a market."""

    wallet: Annotated[Wallet | None, Meta(description="Only this wallet: its full address")] = None
