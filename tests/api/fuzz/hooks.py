"""Schemathesis hooks: fresh keys and addresses, refusals that a schema cannot express, and a count of responses."""

import atexit
import json
import os
import re
import uuid
from collections import Counter
from pathlib import Path

import schemathesis
from schemathesis.openapi.checks import RejectedPositiveData

from api.metering import keys
from sql import database

ROTATE, REGISTER, RECOVER = "POST /v1/keys/rotate", "POST /register", "POST /recover"
SOCKETS = {"GET /stream", "GET /replay/ws/market"}
# Refusals of requests that the schema allows: contradictory or meaningless combinations.
REFUSED = re.compile(
    r"has no such outcome|needs `(source=local|source=data-api|market_id)`|a tag or a category, not both"
    r"|The cursor cannot be used|`(ids|symbols)` names \d+ markets|request line is too long|contains a NUL character"
    r"|expected a moment between 1970 and 9999|is after `to`|is more than a day before|gives more than \d+ books"
    r"|`(markets|url|wallets|step)`: (?!expected)"
    r"|wallets can be watched|The link is not valid|is in the future|is not after the start|needs `replay_from`"
    r"|`source=polymarket` has its own markets alone"
)

answered: Counter = Counter()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Give each rotation its own key, and each registration and recovery its own address."""
    if case.operation.label == ROTATE and case.headers.get("X-API-Key") == os.environ["FUZZ_KEY"]:
        with database.connect(os.environ["DATABASE_URL"], autocommit=True, name="fuzzer") as conn:
            case.headers["X-API-Key"] = keys.create(conn, f"{uuid.uuid4().hex}@presage.example", "fuzzer", "free")
    if case.operation.label in {REGISTER, RECOVER} and case.meta.generation.mode.is_positive:
        case.body["email"] = f"{uuid.uuid4().hex}@presage.example"


@schemathesis.hook
def after_call(context, case, response):
    answered[f"{response.request.method} {case.operation.path}", response.status_code] += 1


@schemathesis.hook
def filter_failure(context, failure, case, response):
    if isinstance(failure, RejectedPositiveData) and response.status_code in (400, 414):
        if case.operation.label in SOCKETS and "send an upgrade request" in response.text:
            return False
        return REFUSED.search(response.text) is None
    return True


@atexit.register
def tell():
    counts = [[label, status, count] for (label, status), count in sorted(answered.items())]
    Path(os.environ["FUZZ_ANSWERED"]).write_text(json.dumps(counts))
