"""The generated modules are those of today's OpenAPI document."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from generator import modules

from api.openapi.document import document
from presage_client import AsyncClient, Client, Record, records

PACKAGE = Path(__file__).parents[3] / "clients/python/presage_client"
DOCUMENT = document()
OPERATIONS = {operation["operationId"]: operation for path in DOCUMENT["paths"].values() for operation in path.values()}
WEBSOCKETS = {name for name, operation in OPERATIONS.items() if "101" in operation["responses"]}


def parameters(operation):
    """The names of an operation's arguments, as the document has them."""
    shared = DOCUMENT["components"]["parameters"]
    given = [
        shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in operation.get("parameters", [])
    ]
    names = [each["name"] for each in given]
    if "requestBody" in operation:
        ref = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        names += DOCUMENT["components"]["schemas"][ref.rpartition("/")[2]]["properties"]
    return names


def test_the_committed_modules_are_what_the_generator_writes(tmp_path):
    modules.write(tmp_path)

    names = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.py")}
    packages = [path.relative_to(PACKAGE) for name in modules.PACKAGES for path in (PACKAGE / name).rglob("*.py")]
    assert names == {*packages, Path("_endpoints.py")}, "run `make client`"
    for name in names:
        assert (PACKAGE / name).read_text() == (tmp_path / name).read_text(), (
            f"{name} is out of date: run `make client`"
        )


def test_no_generated_module_is_too_long_to_read():
    lengths = {
        path: path.read_text().count("\n") for name in modules.PACKAGES for path in (PACKAGE / name).glob("*.py")
    }
    assert max(lengths.values()) < 400, lengths


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - WEBSOCKETS))
def test_each_operation_is_a_method(client, name):
    method = getattr(client, name)
    arguments = inspect.signature(method).parameters

    wire = {argument.removesuffix("_") for argument in arguments if argument != "self"}
    snake = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", each) for each in parameters(OPERATIONS[name])}
    assert wire == snake
    assert inspect.iscoroutinefunction(method) == (client is AsyncClient)
    assert method.__doc__.startswith(OPERATIONS[name]["summary"][:60])
    assert hasattr(client, f"iter_{name}") == ("cursor" in wire)


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_websockets_are_written_by_hand(client):
    assert {"stream", "market_channel_replay"} == WEBSOCKETS
    assert all(callable(getattr(client, name)) for name in WEBSOCKETS)


def test_each_record_has_the_fields_of_its_schema():
    def fields(schema):
        for part in schema.get("allOf", []):
            yield from fields(
                DOCUMENT["components"]["schemas"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
            )
        yield from schema.get("properties", {})

    for name in records.__all__:
        record = getattr(records, name)
        assert issubclass(record, Record)
        assert set(record.__struct_fields__) == set(fields(DOCUMENT["components"]["schemas"][name])), name
        assert set(record.INSTANTS) <= set(record.__struct_fields__)
    assert records.Trade.INSTANTS == {"ts": "ms"}
    assert {"created_at", "end_time", "updated_at"} <= set(records.RankedMarket.INSTANTS)
