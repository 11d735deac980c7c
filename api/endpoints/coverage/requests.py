"""Parameters of the coverage endpoints."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.schemas.requests import CursorText, Exchange, Instant, Parameters

Kind = Literal["trades", "books", "settlements"]
GapStatus = Literal["open", "fillable", "filled", "lost"]


class GapParameters(Parameters, frozen=True, kw_only=True):
    """Which gaps to list."""

    kind: Annotated[Kind | None, Meta(description="Only gaps in this kind of data")] = None
    status: Annotated[
        GapStatus | None,
        Meta(
            description="Only gaps with this status. `open`: ongoing; `fillable`: over, and its data is still "
            "available; "
            "`filled`: filled in; `lost`: its data is not available anywhere"
        ),
    ] = None
    from_: Annotated[
        Instant | None, Meta(description="Only gaps that end at or after this moment: RFC 3339 or Unix ms")
    ] = msgspec.field(default=None, name="from")
    to: Annotated[Instant | None, Meta(description="Only gaps that began before this moment: RFC 3339 or Unix ms")] = (
        None
    )
    limit: Annotated[int, Meta(ge=1, le=1000, description="Maximum number of gaps in the response")] = 100
    cursor: Annotated[CursorText | None, Meta(description="`next_cursor` of the previous page")] = None


class CoverageParameters(GapParameters, frozen=True, kw_only=True):
    """Whose coverage, and which gaps to list."""

    exchange: Exchange = "polymarket"
