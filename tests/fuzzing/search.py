"""One target's search: `search.py TARGET RECORDED libFuzzer-options…`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["api", "orchestration", "upstream"]):
    from tests.fuzzing.targets import TARGETS

from tests.fuzzing import seeds


def main(target: str, recorded: Path, options: list[str]) -> None:
    """Search from the target's valid inputs on; the process ends with a status that is not 0 at the first failure."""
    with tempfile.TemporaryDirectory(prefix="presage-corpus-") as corpus:
        for number, data in enumerate(seeds.all_seeds(recorded)[target]):
            (Path(corpus) / str(number)).write_bytes(data)
        atheris.Setup([sys.argv[0], corpus, *options], TARGETS[target])
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
