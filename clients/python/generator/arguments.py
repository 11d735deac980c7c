"""Arguments of a method: parameters of the path and the query, fields of the body."""

from __future__ import annotations

from typing import NamedTuple

from generator.schemas import Schema, option_description, python_type
from generator.text import python_name, sentence

SEPARATED = {"ids", "symbols"}  # parameters that are names separated by commas
TIMES = {"from", "to"}  # integers that are Unix seconds


class Argument(NamedTuple):
    """One argument of a method."""

    wire: str  # its name in the request
    kind: str
    default: str | None  # None: required
    about: str
    sent: str  # an expression with its value

    @property
    def name(self) -> str:
        """Its name in Python."""
        return python_name(self.wire)

    @property
    def declared(self) -> str:
        """The argument in a signature."""
        return f"{self.name}: {self.kind}" + ("" if self.default is None else f" = {self.default}")


def in_path(parameter: Schema) -> Argument:
    """Return the argument of a parameter of the path."""
    name = parameter["name"]
    return Argument(name, "str | date" if name == "day" else "str", None, _about(parameter), python_name(name))


def in_query(parameter: Schema) -> Argument:
    """Return the argument of a parameter of the query."""
    name, schema = parameter["name"], parameter["schema"]
    kind, sent = python_type(schema, "records."), python_name(name)
    formats = {schema.get("format"), *(option.get("format") for option in schema.get("anyOf", []))}
    if "date-time" in formats:
        kind = "Instant"
    elif "date" in formats:
        kind = "str | date"
    elif name in TIMES and kind == "int":
        kind, sent = "int | datetime", f"seconds({sent})"
    elif name in SEPARATED:
        kind, sent = "str | Iterable[str]", f"joined({sent})"
    elif name == "outcome":
        kind = "str | int"
    required = parameter.get("required", False)
    return Argument(name, kind if required else f"{kind} | None", None if required else "None", _about(parameter), sent)


def in_body(name: str, field: Schema, *, required: bool) -> Argument:
    """Return the argument of a field of the body."""
    kind, sent = python_type(field, "records.", "Sequence"), python_name(name)
    about = sentence(text) if (text := field.get("description") or option_description(field)) else ""
    if required:
        return Argument(name, kind, None, about, sent)
    if "default" in field:  # as good as left out
        kind = kind if kind.endswith("| None") else f"{kind} | None"
        return Argument(name, kind, "None", about, f"UNSET if {sent} is None else {sent}")
    kind = kind.removesuffix(" | None") + " | UnsetType" + (" | None" if kind.endswith(" | None") else "")
    return Argument(name, kind, "UNSET", about, sent)


def mapping(arguments: list[Argument]) -> str:
    """Return a dict of the arguments' values by their names in the request."""
    return "{" + ", ".join(f'"{argument.wire}": {argument.sent}' for argument in arguments) + "}"


def _about(parameter: Schema) -> str:
    schema = parameter["schema"]
    about: list[str] = []
    if text := parameter.get("description") or option_description(schema):
        about.append(sentence(text))
    if schema.get("default") not in (None, ""):
        about.append(f"Default: {schema['default']}.")
    if "maximum" in schema and parameter["name"] == "limit":
        about.append(f"At most {schema['maximum']}.")
    return " ".join(about)
