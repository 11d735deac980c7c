"""Request parameters: types, bounds and descriptions, for validation and the OpenAPI document."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from api.errors import Problem, refuse_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

P = TypeVar("P", bound="Parameters")
Exchange = Annotated[Literal["polymarket", "kalshi"], Meta(description="The exchange that lists them")]
Status = Literal["ACTIVE", "CLOSED", "RESOLVED"]
Text = Annotated[str, Meta(min_length=1, max_length=200)]
CursorText = Annotated[str, Meta(min_length=1, max_length=500)]
Wallet = Annotated[str, Meta(pattern="^0x[0-9a-fA-F]{40}$", max_length=42)]  # `$` alone would accept a trailing newline
Seconds = Annotated[int, Meta(ge=0, le=253_370_764_800)]
Sequence = Annotated[int, Meta(ge=0, le=2**53)]
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
MAX_BUCKETS = 20_000
MAX_LIST_LENGTH = 7000  # what fits in a request line: a hundred condition ids


class Instant(datetime):
    """A moment, given as RFC 3339 or as Unix milliseconds."""


class Parameters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """No parameters."""


class OutcomeParameters(Parameters, frozen=True, kw_only=True):
    """One outcome of a market."""

    outcome: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="The outcome: its index from 0 or its name",
            examples=["0", "Yes"],
        ),
    ] = "0"


class RangeParameters(OutcomeParameters, frozen=True, kw_only=True):
    """A time range of one outcome."""

    from_: Annotated[Instant | None, Meta(description="Only from this moment on: RFC 3339 or Unix milliseconds")] = (
        msgspec.field(default=None, name="from")
    )
    to: Annotated[
        Instant | None, Meta(description="Only before this moment: RFC 3339 or Unix milliseconds; default: now")
    ] = None


Speed = Annotated[
    float,
    Meta(ge=0, le=1_000_000, description="Multiple of real time; 0: as fast as the client reads"),
]


def parse(kind: type[P], given: Mapping[str, Any]) -> P:
    """Validate and convert query parameters; a Problem names the invalid one and the allowed values."""
    for name, value in given.items():
        if "\0" in name or "\0" in value:  # also in a list: PostgreSQL's text type cannot hold it
            raise Problem("invalid_parameter", f"`{name[:50]}` contains a NUL character".replace("\0", ""))
        if isinstance(value, str) and name not in {"api_key", "cursor"}:  # a cursor is signed, and may look like one
            refuse_secrets(name, value)
    try:
        asked = msgspec.convert(given, kind, strict=False, dec_hook=decode)
    except msgspec.ValidationError as error:
        raise _problem(kind, given, str(error)) from None
    for name, value in given.items():
        if isinstance(value, str) and value.lower() == "null" and _left_out(asked, name):
            # msgspec reads it as None, as if it had been omitted.
            raise _problem(kind, given, f"Expected a value - at `$.{name}`")
    return asked


def _left_out(asked: Parameters, name: str) -> bool:
    attribute = next(field.name for field in msgspec.structs.fields(asked) if field.encode_name == name)
    return getattr(asked, attribute) is None


def decode(kind: type, value: Any) -> Any:
    """Decode our only custom type."""
    assert kind is Instant, kind
    return instant(value)


def instant(value: Any) -> Instant:
    """Parse RFC 3339 or Unix milliseconds."""
    try:
        if re.fullmatch("[0-9]{1,15}", value):
            moment = EARLIEST + timedelta(milliseconds=int(value))
        else:
            # In a query string an unescaped plus sign, as in `…+00:00`, is decoded as a space.
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
    """Return the JSON schema of each parameter."""
    schema = msgspec.json.schema(kind, schema_hook=schema_of)
    while "$ref" in schema:
        schema = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    properties: dict[str, dict[str, Any]] = schema.get("properties", {})
    return properties


def schema_of(kind: type) -> dict[str, Any]:
    """Return the schema of our only custom type."""
    assert kind is Instant, kind
    return {
        "type": "string",
        "anyOf": [{"format": "date-time"}, {"pattern": "^[0-9]{1,15}$"}],
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
            f"The parameter `{name}` is unknown",
            hint=f"Allowed parameters: {names}",
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
    """Return a parameter's allowed values as text."""
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
