"""Every endpoint of the interface specification is there, with its parameters, defaults and maximums."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from api.endpoints.table import ENDPOINTS
from api.schemas.requests import fields

SPEC = (Path(__file__).parents[3] / "../shared/spec.md").resolve()
SECTIONS = {"4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7"}
# Values of parameters that the specification leaves to us to name.
NAMED = {"<upstream_market_source>": "polymarket"}
# Beyond it: which outcome, which moment of a book, how gaps between candles are filled, where the stream goes on or
# what of the past it plays, by what wallets are ranked, and of lists of history the range, market and next page.
OURS = {
    *("outcome", "fill", "resume_from", "replay_from", "replay_to", "speed", "by", "at"),
    *("from", "to", "market_id", "cursor", "limit", "exchange"),
}

ROUTED = {(endpoint.method, endpoint.path): endpoint for endpoint in ENDPOINTS}


def rows():
    """Each row of the tables: method, path, what it takes, what it answers."""
    section = ""
    for line in SPEC.read_text().splitlines():
        if heading := re.match(r"### (\d\.\d)", line):
            section = heading[1]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if section in SECTIONS and len(cells) == 4 and cells[1].startswith("/"):
            yield cells


ROWS = list(rows())


def named(parameters):
    """The parameters that a row names, with what it says of each."""
    found = re.split(r"[;:.,] (?:optional query )?(?=`)|^(?=`)", parameters)
    told = {}
    for part in found:
        for name in re.match(r"((?:`\w+`,? ?)*)", part)[1].replace("`", "").replace(",", " ").split():
            told[name] = part
    return told


def test_the_specification_is_read():
    assert len(ROWS) == 57


@pytest.mark.parametrize(("method", "path"), [row[:2] for row in ROWS], ids=lambda value: value)
def test_every_path_is_routed(method, path):
    assert (method, path) in ROUTED


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_an_endpoint_takes_the_parameters_named_and_no_others(row):
    method, path, given, _ = row
    endpoint = ROUTED[method, path]
    taken = set(fields(endpoint.parameters))
    if endpoint.body is not None:
        taken = {field.name for field in msgspec.structs.fields(endpoint.body)}
    told = set(named(given)) | set(re.findall(r"`{(\w+): \w+}`", given)) if "`" in given else set()
    if path == "/stream":
        told = {"api_key"}

    assert taken - (OURS - told) == told - {"id"}


@pytest.mark.parametrize("row", [row for row in ROWS if "`" in row[2]], ids=lambda row: row[1])
def test_defaults_maximums_and_values_are_those_of_the_specification(row):
    method, path, given, _ = row
    schemas = fields(ROUTED[method, path].parameters)
    for name, told in named(given).items():
        schema = schemas.get(name, {})
        options = [schema, *schema.get("anyOf", [])]
        if most := re.search(r"max (\d+)\b", told):
            limit = int(most[1])
            if name == "ids":
                assert f"{limit} markets" in schema["description"]
            else:
                assert limit in [option.get("maximum") for option in options], (name, told)
        if usual := re.search(r"[(,;] ?default (?!is )(\w+)", told):
            assert str(schema["default"]) == usual[1], (name, told)
        if values := re.search(r"enum ([\w, <>-]+)", told.split("(")[0]):
            said = re.split(r", | or ", values[1].strip())
            assert {NAMED.get(value, value) for value in said} <= {
                value for option in options for value in option.get("enum", [])
            }, (name, told)
