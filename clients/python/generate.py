"""Write the generated modules of the client from the OpenAPI document: run by `make client`.

`records.py` has a class for each schema of an answer, `_endpoints.py` a row for each operation, `_operations.py` and
`_async_operations.py` a method for each, and an iterator for each list with a cursor.
"""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
import textwrap
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from api.openapi.document import document

PACKAGE = Path(__file__).parent / "presage_client"
HEAD = '"""{title}\n\nGenerated from the OpenAPI document by generate.py: do not edit; run `make client`.\n"""\n'
WEBSOCKET = "101"  # such operations are written by hand, in client.py and async_client.py
WIDTH = 116
SEPARATED = {"ids", "symbols"}  # parameters that are names separated by commas
TIMES = {"from", "to"}  # integers that are Unix seconds
DESCRIPTIONS = {  # instead of the document's
    "export_file": "Held in memory as a whole; `download_file` writes it to disk and resumes after a lost connection."
}
BUILTIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Any]"}


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
        return _python(self.wire)

    @property
    def declared(self) -> str:
        """The argument in a signature."""
        return f"{self.name}: {self.kind}" + ("" if self.default is None else f" = {self.default}")


class Operation:
    """One operation of the document."""

    def __init__(self, document: dict[str, Any], method: str, path: str, said: dict[str, Any]) -> None:
        self.document, self.method, self.path, self.said = document, method.upper(), path, said
        self.name: str = said["operationId"]
        self.constant = self.name.upper()
        self.status, self.success = next((s, a) for s, a in said["responses"].items() if s < "3")

    @cached_property
    def parameters(self) -> list[dict[str, Any]]:
        """Its parameters, references resolved."""
        shared = self.document["components"]["parameters"]
        return [shared[p["$ref"].rpartition("/")[2]] if "$ref" in p else p for p in self.said.get("parameters", [])]

    @cached_property
    def path_arguments(self) -> list[Argument]:
        return [
            Argument(p["name"], "str | date" if p["name"] == "day" else "str", None, _about(p), _python(p["name"]))
            for p in self.parameters
            if p["in"] == "path"
        ]

    @cached_property
    def query_arguments(self) -> list[Argument]:
        return [_query(p) for p in self.parameters if p["in"] == "query"]

    @cached_property
    def body_arguments(self) -> list[Argument]:
        if "requestBody" not in self.said:
            return []
        schema = _resolved(self.document, self.said["requestBody"]["content"]["application/json"]["schema"])
        required = schema.get("required", [])
        return [_field_of_body(name, field, required=name in required) for name, field in schema["properties"].items()]

    @cached_property
    def media(self) -> tuple[str, dict[str, Any]]:
        ((media, told),) = self.success["content"].items()
        return media, told["schema"]

    @cached_property
    def answers(self) -> str:
        """The type of its answers, as msgspec decodes it."""
        media, schema = self.media
        if media.startswith("application/octet-stream"):
            return "bytes"
        return _kind(schema, "records.", "list")

    @property
    def json(self) -> bool:
        return self.answers not in {"str", "bytes"}

    @cached_property
    def item(self) -> str | None:
        """The type of the elements of an answer that is an array."""
        return _kind(self.media[1]["items"], "records.") if self.media[1].get("type") == "array" else None

    @property
    def returns(self) -> str:
        return f"Records[{self.item}]" if self.item else self.answers

    @property
    def auth(self) -> str:
        security = self.said.get("security", self.document["security"])
        schemes = {name for option in security for name in option}
        return "debug" if "DebugToken" in schemes else "key" if schemes else "none"

    @property
    def page_item(self) -> str | None:
        """The type that a list with a cursor iterates over."""
        if not any(argument.wire == "cursor" for argument in self.query_arguments):
            return None
        page = _resolved(self.document, self.media[1])
        return _kind(page["properties"]["data"]["items"], "records.")

    @property
    def row(self) -> str:
        """Its row in `_endpoints.py`."""
        more = [f"item={self.item}"] if self.item and self.item.startswith("records.") else []
        more += ["item=dict"] if self.item and not more else []
        more += [f'auth="{self.auth}"'] if self.auth != "key" else []
        more += [] if self.json else ["json=False"]
        given = ", ".join([f'"{self.method}"', f'"{self.path}"', self.answers, *more])
        return f"{self.constant}: Endpoint[{self.returns}] = Endpoint({given})"

    def methods(self, *, asynchronous: bool) -> str:
        """Its method, and its iterator if it has a cursor."""
        call = f"self._call(_endpoints.{self.constant}, {self._given(self.query_arguments)}"
        call += f", {_dict(self.body_arguments)})" if "requestBody" in self.said else ")"
        begin, wait = ("async def", "await ") if asynchronous else ("def", "")
        arguments = [*self.path_arguments, *self.query_arguments, *self.body_arguments]
        made = _method(f"{begin} {self.name}", arguments, self.returns, self._text(arguments), f"return {wait}{call}")
        if self.page_item is None:
            return made
        arguments = [*self.path_arguments, *(a for a in self.query_arguments if a.wire != "offset")]
        queried = [a for a in self.query_arguments if a.wire != "offset"]
        call = f"return self._pages(_endpoints.{self.constant}, {self._given(queried)})"
        iterator = "AsyncIterator" if asynchronous else "Iterator"
        text = [f"Iterate over all pages of `{self.name}`: `limit` is the size of a page."]
        return made + _method(f"def iter_{self.name}", arguments, f"{iterator}[{self.page_item}]", text, call)

    def _given(self, query: list[Argument]) -> str:
        return f"{_dict(self.path_arguments)}, {_dict(query)}"

    def _text(self, arguments: list[Argument]) -> list[str]:
        text = [_sentence(self.said["summary"])]
        if about := DESCRIPTIONS.get(self.name, self.said.get("description")):
            text += ["", *textwrap.wrap(about, WIDTH - 8)]
        text += ["", *textwrap.wrap(f"Credits: {self.said['x-credits']}.", WIDTH - 8)]
        if any(argument.about for argument in arguments):
            text += ["", "Args:"]
        for argument in arguments:
            if argument.about:
                line = f"    {argument.name}: {argument.about}"
                text += textwrap.wrap(line, WIDTH - 8, subsequent_indent=" " * 8)
        return text


def generated() -> dict[Path, str]:
    """Return the modules, formatted."""
    said = document()
    everything = [
        Operation(said, method, path, told)
        for path, methods in said["paths"].items()
        for method, told in methods.items()
    ]
    operations = [operation for operation in everything if operation.status != WEBSOCKET]
    modules = {
        "records.py": _records(said, operations),
        "_endpoints.py": _endpoints(operations),
        "_operations.py": _class(operations, asynchronous=False),
        "_async_operations.py": _class(operations, asynchronous=True),
    }
    return {PACKAGE / name: _formatted(name, text) for name, text in modules.items()}


def _endpoints(operations: list[Operation]) -> str:
    rows = "\n".join(operation.row for operation in operations)
    return (
        HEAD.format(title="The operations of the service: where each is and what it answers.")
        + "from __future__ import annotations\n\nfrom typing import TYPE_CHECKING, Any\n\n"
        + "from presage_client import records\nfrom presage_client._transport import Endpoint\n\n"
        + f"if TYPE_CHECKING:\n    from presage_client._record import Records\n\n{rows}\n"
    )


def _class(operations: list[Operation], *, asynchronous: bool) -> str:
    name, iterator, title = (
        ("AsyncOperations", "AsyncIterator", "The operations of the service, for asyncio.")
        if asynchronous
        else ("Operations", "Iterator", "The operations of the service, a method each.")
    )
    methods = "".join(operation.methods(asynchronous=asynchronous) for operation in operations)
    return f'''{HEAD.format(title=title)}
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from msgspec import UNSET, UnsetType

from presage_client import _endpoints
from presage_client._transport import joined, seconds

if TYPE_CHECKING:
    from collections.abc import {"AsyncIterator, Iterable" if asynchronous else "Iterable, Iterator"}, Mapping, Sequence
    from datetime import date, datetime

    from presage_client import records
    from presage_client._record import Records
    from presage_client._transport import Endpoint, Instant, Page, Parameter

T = TypeVar("T")


class {name}(ABC):
    """One method for each operation of the OpenAPI document."""

    @abstractmethod
    {"async " if asynchronous else ""}def _call(
        self,
        endpoint: Endpoint[T],
        path: Mapping[str, Parameter],
        query: Mapping[str, Parameter],
        body: Mapping[str, Any] | None = None,
    ) -> T: ...

    @abstractmethod
    def _pages(
        self, endpoint: Endpoint[Page[T]], path: Mapping[str, Parameter], query: Mapping[str, Parameter]
    ) -> {iterator}[T]: ...
{methods}'''


def _method(begin: str, arguments: list[Argument], returns: str, text: list[str], body: str) -> str:
    first = [argument.declared for argument in arguments if argument.default is None]
    rest = [argument.declared for argument in arguments if argument.default is not None]
    signature = ", ".join(["self", *first, *(["*", *rest] if rest else [])])
    return f"\n    {begin}({signature}) -> {returns}:\n{_docstring(text, 8)}        {body}\n"


def _query(parameter: dict[str, Any]) -> Argument:
    name, schema = parameter["name"], parameter["schema"]
    kind, sent = _kind(schema, "records."), _python(name)
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


def _field_of_body(name: str, field: dict[str, Any], *, required: bool) -> Argument:
    kind = _kind(field, "records.", "Sequence")
    about = _about({**field, "schema": field})
    if required:
        return Argument(name, kind, None, about, _python(name))
    if "default" in field:  # as good as left out
        kind = kind if kind.endswith("| None") else f"{kind} | None"
        return Argument(name, kind, "None", about, f"UNSET if {_python(name)} is None else {_python(name)}")
    kind = kind.removesuffix(" | None") + " | UnsetType" + (" | None" if kind.endswith(" | None") else "")
    return Argument(name, kind, "UNSET", about, _python(name))


def _about(parameter: dict[str, Any]) -> str:
    schema = parameter["schema"]
    about: list[str] = []
    options = [option.get("description") for option in schema.get("anyOf", [])]
    if text := parameter.get("description") or next((option for option in options if option), ""):
        about.append(_sentence(text))
    if schema.get("default") not in (None, "") and "schema" in parameter and parameter.get("in"):
        about.append(f"Default: {schema['default']}.")
    if "maximum" in schema and parameter["name"] == "limit":
        about.append(f"At most {schema['maximum']}.")
    return " ".join(about)


def _records(said: dict[str, Any], operations: list[Operation]) -> str:
    schemas = said["components"]["schemas"]
    wanted: set[str] = set()
    for operation in operations:
        _collect(operation.media[1], schemas, wanted)
    classes: list[str] = []
    written: set[str] = set()

    def write(name: str) -> None:
        if name in written:
            return
        written.add(name)
        for part in schemas[name].get("allOf", []):
            if "$ref" in part:
                write(_referred(part))
        classes.append(_record(name, schemas[name]))

    for name in sorted(wanted):
        write(name)
    names = "".join(f'    "{name}",\n' for name in sorted(wanted))
    return (
        HEAD.format(title="The records of the service: what its operations answer.")
        + """from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import field

from presage_client import _record
from presage_client._record import Record

if TYPE_CHECKING:
    from typing import Literal

    from presage_client._record import Records
else:  # what msgspec decodes
    Literal, Records = _record.AnyString, list

"""
        + f"__all__ = [\n{names}]\n\n\n"
        + "\n\n".join(classes)
    )


def _record(name: str, schema: dict[str, Any]) -> str:
    base, own = "Record", schema
    for part in schema.get("allOf", []):
        if "$ref" in part:
            base = _referred(part)
        else:
            own = part
    lines = [
        f"class {name}({base}, kw_only=True):\n",
        _docstring([_sentence(schema.get("description", name))], 4),
        "\n",
    ]
    instants = {n: unit for n, field in own["properties"].items() if (unit := _unit(n, field))}
    if instants:
        inherited = f"**{base}.INSTANTS, " if base != "Record" else ""
        pairs = ", ".join(f'"{n}": "{unit}"' for n, unit in instants.items())
        lines.append(f"    INSTANTS: ClassVar[dict[str, str]] = {{{inherited}{pairs}}}\n\n")
    required = own.get("required", [])
    for field_name, field in own["properties"].items():
        lines.append(f"    {field_name}: {_declared(field, required=field_name in required)}\n")
        if text := field.get("description") or _of_options(field):
            lines.append(_docstring([_sentence(text)], 4))
    if listed := {n: _list_of(field) for n, field in own["properties"].items() if _list_of(field)}:
        if base != "Record":
            raise ValueError(f"{name} has lists and a base")
        lines.append("\n    def __post_init__(self) -> None:\n")
        lines += [f"        self.{field} = _record.Records(self.{field}, {kind})\n" for field, kind in listed.items()]
    return "".join(lines)


def _declared(field: dict[str, Any], *, required: bool) -> str:
    """Return a field's type and default. One that may be absent without a default is then None."""
    kind = _kind(field, "", "Records" if _list_of(field) else "list")
    if required:
        return kind
    default = field.get("default")
    if default == []:
        return f"{kind} = field(default_factory=list)"
    if default is not None:
        return f"{kind} = {default!r}"
    return (kind if kind.endswith("| None") else f"{kind} | None") + " = None"


def _list_of(field: dict[str, Any]) -> str | None:
    """Return the record that a field is a list of."""
    return _referred(field["items"]) if field.get("type") == "array" and "$ref" in field["items"] else None


def _unit(name: str, field: dict[str, Any]) -> str | None:
    """Return the unit of a field that is a Unix time: "s", "ms"; None if it is none."""
    options = [field, *field.get("anyOf", [])]
    if not any(option.get("type") == "integer" for option in options):
        return None
    text = " ".join(option.get("description", "") for option in options)
    if "Unix milliseconds" in text or name == "ts" or name.endswith("_ts"):
        return "ms"
    return "s" if "Unix seconds" in text or name.endswith(("_at", "_time")) else None


def _of_options(field: dict[str, Any]) -> str:
    return next((option["description"] for option in field.get("anyOf", []) if "description" in option), "")


def _kind(schema: dict[str, Any], prefix: str, array: str = "list") -> str:
    """Return the Python type of a schema."""
    if "$ref" in schema:
        return prefix + _referred(schema)
    if "enum" in schema:
        return "Literal[" + ", ".join(f'"{value}"' for value in schema["enum"]) + "]"
    options = [option for option in schema.get("anyOf", []) if "type" in option or "$ref" in option or "enum" in option]
    if options:
        kinds = [_kind(option, prefix, array) for option in options if option.get("type") != "null"]
        return " | ".join([*kinds, *(["None"] if len(kinds) < len(options) else [])])
    if schema.get("type") == "array":
        return f"{array}[{_kind(schema['items'], prefix, array)}]"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"dict[str, {_kind(schema['additionalProperties'], prefix, array)}]"
    return BUILTIN[schema["type"]]


def _collect(schema: Any, schemas: dict[str, Any], found: set[str]) -> None:
    """Add the schemas that one refers to."""
    if isinstance(schema, dict):
        if "$ref" in schema and (name := _referred(schema)) not in found:
            found.add(name)
            _collect(schemas[name], schemas, found)
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            _collect(part, schemas, found)


def _resolved(said: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = said["components"]["schemas"][_referred(schema)]
    return found


def _referred(schema: dict[str, Any]) -> str:
    name: str = schema["$ref"].rpartition("/")[2]
    return name


def _dict(arguments: list[Argument]) -> str:
    return "{" + ", ".join(f'"{argument.wire}": {argument.sent}' for argument in arguments) + "}"


def _python(name: str) -> str:
    """Return a parameter's name in Python."""
    snake = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def _sentence(text: str) -> str:
    return text if text.endswith((".", ":", "!", "?")) else f"{text}."


def _docstring(lines: list[str], indent: int) -> str:
    """Return a docstring: its first line whole if it fits, the others as they are."""
    first, *rest = [line.replace("\\", "\\\\").replace('"""', "'''") for line in lines]
    margin = " " * indent
    if len(first) > WIDTH - indent:
        head, *tail = textwrap.wrap(first, WIDTH - indent)
        rest = [*tail, *rest]
        first = head
    if not rest:
        return f'{margin}"""{first}{" " if first.endswith(chr(34)) else ""}"""\n'
    body = "".join(f"{margin}{line}\n" if line else "\n" for line in rest)
    return f'{margin}"""{first}\n{body}{margin}"""\n'


def _formatted(name: str, text: str) -> str:
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(PACKAGE / name), "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603 - ours


if __name__ == "__main__":
    for path, module in generated().items():
        path.write_text(module)
