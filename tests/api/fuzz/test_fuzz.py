"""Whatever is asked, with a key or without, the answer is one that the document promises: schemathesis, all checks."""

from __future__ import annotations

import pytest

from api.endpoints.table import ENDPOINTS
from tests.api.fuzz.schemathesis_run import run
from tests.effort import LONG, examples

EXAMPLES, LEAST = examples(4, 1_700), examples(300, 100_000)
# All the bounds of all parameters are asked for by `make fuzz`.
PHASES = "examples,coverage,fuzzing,stateful" if LONG else "examples,fuzzing"
# New questions are made up by `make fuzz`, and not for whoever changes something else.
HOW = {"generation_database": "none"} if LONG else {"generation_deterministic": None}
# A WebSocket is no answer for a fuzzer of HTTP, the document is what it has begun with, and no file's name is guessed.
FILES = {"GET /v1/exports/{topic}/{day}", "GET /v1/exports/{topic}/{day}/{file}"}
# Of a webhook that a fuzzer made, a delivery is met by luck only; nobody verifies its URL, or has the token of a mail.
LUCK = {"POST /v1/webhooks/{id}/deliveries/{delivery_id}/redeliver", "POST /v1/webhooks/{id}/test", "POST /confirm"}
ASIDE = {"GET /stream", "GET /replay/ws/market", "GET /openapi.json", *FILES, *LUCK}


@pytest.mark.timeout(4 * 3600 if LONG else 900)
def test_everything_the_document_allows_is_answered_as_it_says(api, tmp_path):
    report = run(api, tmp_path, keyed=True, checks="all", phases=PHASES, max_examples=EXAMPLES, **HOW)

    assert report.passed, report.output
    print(f"{report.requests:,} requests")
    assert report.requests >= LEAST
    assert report.operations(500, 599) == set()
    every = {f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS}
    succeeded, wanted = report.operations(200, 299) - LUCK, every - ASIDE
    assert succeeded <= wanted
    assert len(succeeded) >= (1 if LONG else 0.9) * len(wanted), wanted - succeeded  # few examples miss some


@pytest.mark.timeout(3600 if LONG else 900)
def test_without_a_key_nothing_is_answered_that_needs_one(api, tmp_path):
    report = run(api, tmp_path, keyed=False, checks="all", phases=PHASES, max_examples=max(2, EXAMPLES // 20), **HOW)

    assert report.passed, report.output
    assert report.operations(500, 599) == set()
    to_all = {f"{each.method} {each.path}" for each in ENDPOINTS if each.key == "none"}
    assert report.operations(200, 299) <= to_all
    assert report.requests >= len(ENDPOINTS)
