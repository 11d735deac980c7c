"""Compiles Solidity with npm's solc, once for each version of the source."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
MODULES = FOLDER.parents[1] / "node_modules"
SOURCES = (FOLDER / "emitter.sol", FOLDER / "compile.mjs")


@cache
def compiled() -> dict[str, Any]:
    """Return each contract's runtime `code`, `abi`, and functions' `selectors`."""
    content = b"".join(source.read_bytes() for source in SOURCES)
    digest = hashlib.sha256(content + (MODULES / "solc/package.json").read_bytes()).hexdigest()[:16]
    kept = Path(tempfile.gettempdir()) / f"presage-emitter-{digest}.json"  # compiling takes two seconds
    try:
        return json.loads(kept.read_text())
    except (OSError, ValueError):
        pass
    assert (MODULES / "solc").is_dir(), f"{MODULES / 'solc'} is missing: `make setup` (or `npm install`) installs it"
    answer = subprocess.run(["node", SOURCES[1], SOURCES[0]], capture_output=True, text=True, check=False, timeout=120)
    assert answer.returncode == 0, answer.stderr
    with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False) as file:
        file.write(answer.stdout)
    Path(file.name).replace(kept)
    return json.loads(answer.stdout)
