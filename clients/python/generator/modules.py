"""Modules of the client that are generated: a package for records and one for each client's operations, by tag."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from api.openapi.document import document
from generator.operations import VARIANTS, Operation, Variant, operations_of
from generator.records import base_of, record
from generator.schemas import Schema, reachable
from generator.text import HEAD

PACKAGES = ("records", *(variant.package for variant in VARIANTS))
COMMON = "common"  # the module of records that operations of several tags return
SETTINGS = Path(__file__).parents[3] / "pyproject.toml"


def write(folder: Path) -> None:
    """Write the modules into a folder."""
    described = document()
    operations = operations_of(described)
    titles = {tag["name"]: tag["description"] for tag in described["tags"]}
    modules = {"_endpoints.py": _endpoints(operations), **_records(described, operations)}
    for variant in VARIANTS:
        modules |= _operations(variant, operations, titles)
    for name, text in modules.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for command in (["check", "--fix-only"], ["format"]):  # the first leaves out the imports that a module does not use
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", "--no-cache", "--config", str(SETTINGS), str(folder)]
        subprocess.run(ruff, check=True)  # noqa: S603 - ours


def _endpoints(operations: list[Operation]) -> str:
    rows = "\n".join(operation.row for operation in operations)
    return f"""{HEAD.format(title="The operations of the service: where each is and what it answers.")}
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage_client import records
from presage_client._transport import Endpoint

if TYPE_CHECKING:
    from presage_client._record import Records

{rows}
"""


def _operations(variant: Variant, operations: list[Operation], titles: dict[str, str]) -> dict[str, str]:
    """Return the modules of a client's operations: a class for each tag, and one of them all."""
    by_tag: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        by_tag[operation.tag].append(operation)
    modules = {f"{tag.lower()}.py": _class(variant, tag, of, titles[tag]) for tag, of in by_tag.items()}
    modules |= {"base.py": _base(variant), "__init__.py": _all_operations(variant, list(by_tag))}
    return {f"{variant.package}/{name}": text for name, text in modules.items()}


def _base(variant: Variant) -> str:
    return f'''{HEAD.format(title="The base of the operations of all tags.")}
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import {variant.iterator}, Mapping

    from presage_client._transport import Endpoint, Page, Parameter

T = TypeVar("T")


class {variant.prefix}BaseOperations(ABC):
    """Sends the requests of operations."""

    @abstractmethod
    {variant.define} _call(
        self,
        endpoint: Endpoint[T],
        path: Mapping[str, Parameter],
        query: Mapping[str, Parameter],
        body: Mapping[str, Any] | None = None,
    ) -> T: ...

    @abstractmethod
    def _pages(
        self, endpoint: Endpoint[Page[T]], path: Mapping[str, Parameter], query: Mapping[str, Parameter]
    ) -> {variant.iterator}[T]: ...
'''


def _class(variant: Variant, tag: str, operations: list[Operation], title: str) -> str:
    methods = "".join(operation.methods(variant) for operation in operations)
    return f'''{HEAD.format(title=title)}
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, UnsetType

from presage_client import _endpoints
from presage_client.{variant.package}.base import {variant.prefix}BaseOperations
from presage_client._transport import joined, seconds

if TYPE_CHECKING:
    from collections.abc import {variant.iterator}, Iterable, Sequence
    from datetime import date, datetime

    from presage_client import records
    from presage_client._record import Records
    from presage_client._transport import Instant


class {variant.prefix}{tag}Operations({variant.prefix}BaseOperations):
    """{title}"""
{methods}'''


def _all_operations(variant: Variant, tags: list[str]) -> str:
    imports = "\n".join(
        f"from presage_client.{variant.package}.{tag.lower()} import {variant.prefix}{tag}Operations" for tag in tags
    )
    bases = ", ".join(f"{variant.prefix}{tag}Operations" for tag in tags)
    return f'''{HEAD.format(title="The operations of the service, a module for each tag of the OpenAPI document.")}
{imports}


class {variant.prefix}Operations({bases}):
    """One method for each operation of the OpenAPI document."""
'''


def _records(described: Schema, operations: list[Operation]) -> dict[str, str]:
    """Return the modules of records: one for each tag that has its own, one of the others, and one of them all."""
    tags: dict[str, set[str]] = defaultdict(set)
    for operation in operations:
        for name in reachable(described, operation.media[1]):
            tags[name].add(operation.tag.lower())
    modules: dict[str, list[str]] = defaultdict(list)
    for name in sorted(tags):
        modules[min(tags[name]) if len(tags[name]) == 1 else COMMON].append(name)
    imports = "\n".join(
        f"from presage_client.records.{module} import {', '.join(names)}" for module, names in modules.items()
    )
    listed = ", ".join(f'"{name}"' for name in sorted(tags))
    title = "The records of the service: what its operations return."
    texts = {"__init__.py": f"{HEAD.format(title=title)}\n{imports}\n\n__all__ = [{listed}]\n"}
    for module, names in modules.items():
        title = "Records that operations of several tags return."
        if module != COMMON:
            title = f"Records that the operations of {module} return."
        shared = f"from presage_client.records.{COMMON} import {', '.join(modules[COMMON])}" * (module != COMMON)
        texts[f"{module}.py"] = _module_of_records(described["components"]["schemas"], title, names, shared)
    return {f"records/{name}": text for name, text in texts.items()}


def _module_of_records(schemas: Schema, title: str, names: list[str], shared: str) -> str:
    classes = "\n\n".join(record(name, schemas[name]) for name in _bases_first(schemas, names))
    return f"""{HEAD.format(title=title)}
# ruff: noqa: E741, F722, F821, TC001, UP037 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from presage_client import _record
from presage_client._field_types import Literal, Records
from presage_client._record import Record
{shared}

{classes}"""


def _bases_first(schemas: Schema, names: list[str]) -> list[str]:
    """Return the records in an order in which each comes after the one that it extends."""
    ordered: list[str] = []
    for name in names:
        base = base_of(schemas[name])
        ordered += [each for each in (base, name) if each in names and each not in ordered]
    return ordered
