"""Records: a class for each schema of an answer."""

from __future__ import annotations

from generator.schemas import Schema, option_description, python_type, referred
from generator.text import docstring, sentence


def base_of(schema: Schema) -> str | None:
    """Return the record that one extends."""
    return next((referred(part) for part in schema.get("allOf", []) if "$ref" in part), None)


def record(name: str, schema: Schema) -> str:
    """Return the class of a schema."""
    base = base_of(schema)
    own = next((part for part in schema.get("allOf", []) if "$ref" not in part), schema)
    fields, required = own["properties"], own.get("required", [])
    lines = [
        f"class {name}({base or 'Record'}, kw_only=True):\n",
        docstring([sentence(schema.get("description", name))], 4),
        "\n",
    ]
    if instants := {field: unit for field, of in fields.items() if (unit := _unit(field, of))}:
        inherited = f"**{base}.INSTANTS, " if base else ""
        pairs = ", ".join(f'"{field}": "{unit}"' for field, unit in instants.items())
        lines.append(f"    INSTANTS: ClassVar[dict[str, str]] = {{{inherited}{pairs}}}\n\n")
    for field, of in fields.items():
        lines.append(f"    {field}: {_declared(of, required=field in required)}\n")
        if text := of.get("description") or option_description(of):
            lines.append(docstring([sentence(text)], 4))
    if lists := {field: item for field, of in fields.items() if (item := _item(of))}:
        if base:
            raise ValueError(f"{name} has lists and a base")
        lines.append("\n    def __post_init__(self) -> None:\n")
        lines += [f"        self.{field} = _record.Records(self.{field}, {item})\n" for field, item in lists.items()]
    return "".join(lines)


def _declared(field: Schema, *, required: bool) -> str:
    """Return a field's type and default. One that may be absent without a default is then None."""
    kind = python_type(field, "", "Records" if _item(field) else "list")
    if required:
        return kind
    default = field.get("default")
    if default == []:
        return f"{kind} = field(default_factory=list)"
    if default is not None:
        return f"{kind} = {default!r}"
    return (kind if kind.endswith("| None") else f"{kind} | None") + " = None"


def _item(field: Schema) -> str | None:
    """Return the record that a field is a list of."""
    return referred(field["items"]) if field.get("type") == "array" and "$ref" in field["items"] else None


def _unit(name: str, field: Schema) -> str | None:
    """Return the unit of a field that is a Unix time: "s", "ms"; None if it is none."""
    options = [field, *field.get("anyOf", [])]
    if not any(option.get("type") == "integer" for option in options):
        return None
    text = " ".join(option.get("description", "") for option in options)
    if "Unix milliseconds" in text or name == "ts" or name.endswith("_ts"):
        return "ms"
    return "s" if "Unix seconds" in text or name.endswith(("_at", "_time")) else None
