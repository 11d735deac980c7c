"""One run of schemathesis over the whole document, and what it came to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.api.fuzz.filled import DEBUG_TOKEN

if TYPE_CHECKING:
    from tests.api.fuzz.filled import Filled

ROOT = Path(__file__).parents[3]
# What a parameter of a name may be, beside what a fuzzer makes up; how often.
ALSO = {
    "path.id": ("markets", 0.8),
    "path.slug": ("categories", 0.8),
    "path.address": ("wallets", 0.8),
    "query.wallet": ("wallets", 0.5),
    "query.ids": ("markets", 0.5),
    "query.symbol": ("markets", 0.5),
    "query.symbols": ("markets", 0.5),
    "query.market_id": ("markets", 0.5),
}
REFUSALS = ["400", "401", "403", "404", "405", "411", "413", "414", "431"]


class Report(NamedTuple):
    """What was answered, by operation and status, and what schemathesis says of it."""

    answered: dict[tuple[str, int], int]
    output: str
    passed: bool

    @property
    def requests(self) -> int:
        return sum(self.answered.values())

    def operations(self, least: int, most: int) -> set[str]:
        """Those that were answered with a status within these; preflights, which all have, aside."""
        return {label for label, status in self.answered if least <= status <= most and not label.startswith("OPTIONS")}


def run(api: Filled, folder: Path, *, keyed: bool, **options: Any) -> Report:
    """Ask everything that the document allows, and much that it does not."""
    folder.mkdir(parents=True, exist_ok=True)
    config, answered = folder / "schemathesis.toml", folder / "answered.json"
    config.write_text(configuration(api, keyed=keyed))
    given = [f"--{name.replace('_', '-')}" + f"={value}" * (value is not None) for name, value in options.items()]
    # The server ends a request whose body does not come after 10 s, which is no slow answer.
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("st"), "--config-file", config, "run", f"{api.url}/openapi.json"),
            *("--request-timeout", "60", "--max-response-time", "15", "--continue-on-failure", "--no-color", *given),
        ],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SCHEMATHESIS_HOOKS": "tests.api.fuzz.hooks",
            "FUZZ_KEY": api.key,
            "FUZZ_ANSWERED": str(answered),
            "DATABASE_URL": api.server.database_url,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    told = {(label, status): count for label, status, count in json.loads(answered.read_text())}
    return Report(told, shortened(done.stdout), done.returncode == 0)


def configuration(api: Filled, *, keyed: bool) -> str:
    """The keys, if any, and names of things that are there."""
    lines = ["[checks.negative_data_rejection]", f"expected-statuses = {json.dumps(REFUSALS)}"]
    if keyed:
        secrets = {"ApiKey": api.key, "ApiKeyQuery": api.key, "DebugToken": DEBUG_TOKEN}
        lines += ["[auth.openapi]", *(f'{name} = {{ api_key = "{secret}" }}' for name, secret in secrets.items())]
    for name in ("markets", "events", "categories", "wallets"):
        lines += [f"[dictionaries.{name}]", f"values = {json.dumps(getattr(api, name))}"]
    lines += ["[parameters]", *(bound(name, *how) for name, how in ALSO.items())]
    lines += ["[[operations]]", 'include-operation-id = "event_markets"']
    lines += ["[operations.parameters]", bound("path.id", "events", 0.8)]
    return "\n".join(lines)


def bound(name: str, dictionary: str, probability: float) -> str:
    return f'"{name}" = {{ dictionary = "{dictionary}", probability = {probability} }}'


def shortened(output: str) -> str:
    """What it printed, without the tails of endless lines."""
    return "\n".join(line[:300] for line in output.splitlines())
