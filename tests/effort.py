"""How many examples a test tries: some in `make test`, many in `make fuzz`."""

from __future__ import annotations

import os

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "fuzz"


def examples(some: int, many: int) -> int:
    """Return how many examples to try in this run."""
    return many if LONG else some
