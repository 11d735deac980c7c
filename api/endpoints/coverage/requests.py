"""What coverage can be asked for."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.schemas.requests import CursorText, Instant, Parameters

Kind = Literal["trades", "books", "settlements"]
GapStatus = Literal["open", "fillable", "filled", "lost"]


class GapsWithin(Parameters, frozen=True, kw_only=True):
    """Which gaps to list."""

    kind: Annotated[Kind | None, Meta(description="Only gaps in this kind of data")] = None
    status: Annotated[
        GapStatus | None,
        Meta(
            description="Only gaps in this state. `open`: it goes on; `fillable`: over, and its data can still be had; "
            "`filled`: it has been; `lost`: nobody has its data"
        ),
    ] = None
    from_: Annotated[
        Instant | None, Meta(description="Only gaps that last until this moment or longer: RFC 3339 or Unix ms")
    ] = msgspec.field(default=None, name="from")
    to: Annotated[Instant | None, Meta(description="Only gaps that began before this moment: RFC 3339 or Unix ms")] = (
        None
    )
    limit: Annotated[int, Meta(ge=1, le=1000, description="Gaps in one answer")] = 100
    cursor: Annotated[CursorText | None, Meta(description="`next_cursor` of the answer before, to go on after it")] = (
        None
    )
