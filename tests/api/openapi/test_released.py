"""The API serves clients of the release before, among them the site, which may be one release behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.openapi.document import document
from tests.api.openapi.contract import REQUIRED, contract

RELEASED = set(Path(__file__).with_name("released.txt").read_text().splitlines())


def broken(now: set[str]) -> list[str]:
    """Return what clients of the release miss, and what they do not know to send."""
    missing = RELEASED - now
    missing -= {line for line in missing if line.removesuffix(REQUIRED) in now}  # no longer required
    operations = {line for line in RELEASED if line.count(" ") == 1 and line.split()[0].isupper()}
    asked = {line for line in now - RELEASED if line.endswith(REQUIRED) and " ".join(line.split()[:2]) in operations}
    return sorted(missing | asked)


def test_the_api_offers_all_that_the_release_before_offered_and_asks_for_nothing_new():
    assert broken(contract(document())) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("GET /v1/stats", None),
        ("Market.slug null|string", "Market.slug string"),
        ("Market.slug null|string", None),
        (None, "GET /v1/stats query since required"),
    ],
)
def test_what_clients_of_the_release_would_miss_is_found(old, new):
    assert broken(RELEASED - {old} | ({new} if new else set())) == [old or new]


def test_what_is_new_disturbs_nobody():
    new = {"GET /v2/stats", "GET /v2/stats query since required", "GET /v1/stats query since", "Market.colour string"}

    assert broken(RELEASED | new) == []
