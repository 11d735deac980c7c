"""What endpoints can be asked: typed, bounded and described once, for checking and for the OpenAPI document."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from api.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

P = TypeVar("P", bound="Parameters")
Exchange = Annotated[Literal["polymarket"], Meta(description="The exchange that lists them")]
Status = Literal["ACTIVE", "CLOSED", "RESOLVED"]
Text = Annotated[str, Meta(min_length=1, max_length=200)]
CursorText = Annotated[str, Meta(min_length=1, max_length=500)]
Wallet = Annotated[str, Meta(pattern="^0x[0-9a-fA-F]{40}$", max_length=42)]  # `$` alone lets a line break through
Seconds = Annotated[int, Meta(ge=0, le=253_370_764_800)]
Sequence = Annotated[int, Meta(ge=0, le=2**53)]
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
MOST_BUCKETS = 20_000
LONGEST_LIST = 7000  # what fits a request line: a hundred condition ids


class Instant(datetime):
    """A moment, given as RFC 3339 or as Unix milliseconds."""


class Parameters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """No parameters."""


class OfOutcome(Parameters, frozen=True, kw_only=True):
    """One outcome of a market."""

    outcome: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="The outcome: its index from 0, or its name",
            examples=["0", "Yes"],
        ),
    ] = "0"


class Range(OfOutcome, frozen=True, kw_only=True):
    """A stretch of time of one outcome."""

    from_: Annotated[Instant | None, Meta(description="Only from this moment on: RFC 3339 or Unix milliseconds")] = (
        msgspec.field(default=None, name="from")
    )
    to: Annotated[
        Instant | None, Meta(description="Only before this moment: RFC 3339 or Unix milliseconds; now when left out")
    ] = None


class MarketFilter(Parameters, frozen=True, kw_only=True):
    """Which markets to list."""

    status: Annotated[
        Status | None, Meta(description="Only markets in this state; with `source=polymarket` not CLOSED")
    ] = None
    category: Annotated[
        Text | None,
        Meta(
            description="Only this category, by its slug; with `source=polymarket` not together with a tag",
            examples=["politics"],
        ),
    ] = None
    tag: Annotated[
        Text | None,
        Meta(description="Only markets with this tag, by its slug; with `source=polymarket` not with a category"),
    ] = None
    series: Annotated[
        Text | None, Meta(description="Only markets of this series, by its name; with `source=local` only")
    ] = None
    exchange: Annotated[Literal["polymarket"], Meta(description="The exchange that lists them")] = "polymarket"
    source: Annotated[
        Literal["local", "polymarket"],
        Meta(description="`local`: as recorded here; `polymarket`: asked of the exchange right now"),
    ] = "local"
    limit: Annotated[int, Meta(ge=1, le=200, description="Markets in one answer")] = 50
    offset: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Markets to pass over; not together with a cursor, and with `source=local` only",
        ),
    ] = 0
    cursor: Annotated[CursorText | None, Meta(description="`next_cursor` of the answer before, to go on after it")] = (
        None
    )


class Ids(Parameters, frozen=True, kw_only=True):
    """Several markets at once."""

    ids: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=LONGEST_LIST,
            description="Up to 100 markets, separated by commas: ids or slugs",
            examples=["will-it-rain-tomorrow"],
        ),
    ]


ALL = "all"  # outcomes; one that is so named is asked for by its index


class TradesOf(Range, frozen=True, kw_only=True):
    """Trades of one outcome, or of all."""

    outcome: Annotated[
        Text | None,
        Meta(
            description="The outcome: its index from 0, its name, or `all`. When left out: 0, and with `wallet` all",
            examples=["0", "Yes", "all"],
        ),
    ] = None  # type: ignore[assignment]  # what it is when left out depends on the wallet

    limit: Annotated[int, Meta(ge=1, le=5000, description="Trades in one answer")] = 100
    source: Annotated[
        Literal["local", "data-api"],
        Meta(description="`local`: as recorded here; `data-api`: asked of the exchange right now"),
    ] = "local"
    wallet: Annotated[Wallet | None, Meta(description="Only trades of this wallet; needs `source=data-api`")] = None


class HistoryOf(Range, frozen=True, kw_only=True):
    """Candles of one outcome."""

    resolution: Annotated[Literal["1s", "1m", "5m", "1h"], Meta(description="The width of a candle")] = "1m"
    limit: Annotated[int, Meta(ge=1, le=MOST_BUCKETS, description="Candles in one answer: the newest of the range")] = (
        500
    )
    fill: Annotated[
        Literal["none", "previous"],
        Meta(description="`previous`: a stretch without trades repeats the last close; `none`: it is left out"),
    ] = "none"


class CandlesOf(OfOutcome, frozen=True, kw_only=True):
    """Candles as a charting library asks for them."""

    resolution: Annotated[Literal["1", "60"], Meta(description="Minutes of a bar")] = "1"
    from_: Annotated[Seconds | None, Meta(description="From this moment on: Unix seconds")] = msgspec.field(
        default=None, name="from"
    )
    to: Annotated[Seconds | None, Meta(description="Only before this moment: Unix seconds; now when left out")] = None


Speed = Annotated[
    float,
    Meta(ge=0, le=1_000_000, description="How many times as fast as it happened; 0: as fast as it can be taken in"),
]


class Connect(Parameters, frozen=True, kw_only=True):
    """How to open the stream."""

    api_key: Annotated[str | None, Meta(description="The API key: a browser cannot send it as a header")] = None
    resume_from: Annotated[Sequence | None, Meta(description="Begin after this `seq`, with what was missed since")] = (
        None
    )
    replay_from: Annotated[
        Instant | None, Meta(description="Play the past again, from this moment on: RFC 3339 or Unix milliseconds")
    ] = None
    replay_to: Annotated[
        Instant | None, Meta(description="Up to this moment; up to when it is asked for when left out")
    ] = None
    speed: Speed = 1.0


def parse(kind: type[P], given: Mapping[str, Any]) -> P:
    """Check and convert a query string's parameters; what is wrong is named, with what would be right."""
    for name, value in given.items():
        if "\0" in name or "\0" in value:  # of a list as well: PostgreSQL's text holds no such character
            raise Problem("invalid_parameter", f"`{name[:50]}` holds a NUL character".replace("\0", ""))
    try:
        asked = msgspec.convert(given, kind, strict=False, dec_hook=decode)
    except msgspec.ValidationError as error:
        raise _problem(kind, given, str(error)) from None
    for name, value in given.items():
        if isinstance(value, str) and value.lower() == "null" and _left_out(asked, name):
            # msgspec reads it as None, as if it had not been said.
            raise _problem(kind, given, f"Expected a value - at `$.{name}`")
    return asked


def _left_out(asked: Parameters, name: str) -> bool:
    attribute = next(field.name for field in msgspec.structs.fields(asked) if field.encode_name == name)
    return getattr(asked, attribute) is None


def decode(kind: type, value: Any) -> Any:
    """Read the type that is ours; there is one."""
    assert kind is Instant, kind
    return instant(value)


def instant(value: Any) -> Instant:
    """Read RFC 3339 or Unix milliseconds."""
    try:
        if re.fullmatch(r"\d{1,15}", value):
            moment = EARLIEST + timedelta(milliseconds=int(value))
        else:
            # In a query string a plus sign means a blank, and so does `…+00:00` when it is not escaped.
            moment = msgspec.convert(value.replace(" ", "+") if value[10:11] in "Tt" else value, datetime)
            moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, msgspec.ValidationError):
        raise ValueError("Expected RFC 3339 or Unix milliseconds") from None
    except OverflowError:
        moment = LATEST
    if not EARLIEST <= moment < LATEST:
        raise ValueError("Expected a moment between 1970 and 9999")
    return Instant(
        moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.microsecond, UTC
    )


def fields(kind: type[Struct]) -> dict[str, dict[str, Any]]:
    """Describe each parameter as a JSON schema."""
    schema = msgspec.json.schema(kind, schema_hook=schema_of)
    while "$ref" in schema:
        schema = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    properties: dict[str, dict[str, Any]] = schema.get("properties", {})
    return properties


def schema_of(kind: type) -> dict[str, Any]:
    """Describe the type that is ours; there is one."""
    assert kind is Instant, kind
    return {
        "type": "string",
        "anyOf": [{"format": "date-time"}, {"pattern": r"^\d{1,15}$"}],
        "examples": ["2026-11-21T12:00:00Z", "1795262400000"],
    }


_UNKNOWN = re.compile(r"unknown field `(.*?)`", re.DOTALL)
_MISSING = re.compile(r"missing required field `(.*?)`")
_AT = re.compile(r" - at `\$\.(\w+).*?`$")


def _problem(kind: type[Parameters], given: Mapping[str, Any], message: str) -> Problem:
    known = fields(kind)
    if match := _UNKNOWN.search(message):
        names = ", ".join(known) or "none"
        name = match[1][:100]
        return Problem(
            "unknown_parameter",
            f"There is no parameter `{name}` here",
            hint=f"Parameters: {names}",
            errors=[{"name": name, "detail": "unknown", "allowed": sorted(known)}],
        )
    if match := _MISSING.search(message):
        name = match[1]
        return Problem(
            "missing_parameter",
            f"`{name}` is required",
            hint=known.get(name, {}).get("description"),
            errors=[{"name": name, "detail": "missing"}],
        )
    match = _AT.search(message)
    name = match[1] if match else next(iter(given), "")
    allowed = _allowed(known.get(name, {}))
    what = "given more than once" if isinstance(given.get(name), list) else _AT.sub("", message)
    return Problem(
        "invalid_parameter",
        f"`{name}`: {what[0].lower()}{what[1:]}" if name else what,
        hint=f"Allowed: {allowed}" if allowed else None,
        errors=[{"name": name, "detail": what, "allowed": allowed}],
    )


def _allowed(schema: dict[str, Any]) -> str | None:
    """Say in words what a parameter may be."""
    options = schema.get("anyOf", [schema])
    for option in options:
        if "enum" in option:
            return ", ".join(str(value) for value in option["enum"] if value is not None)
        if "minimum" in option and "maximum" in option:
            return f"{option['minimum']} to {option['maximum']}"
        if "pattern" in option:
            return str(option["pattern"])
        if "examples" in option and "anyOf" in schema:
            return "RFC 3339 or Unix milliseconds"
    return None
