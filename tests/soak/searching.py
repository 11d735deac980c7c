"""Searches files, answers, command lines and statements for secrets, in plain, URL-encoded or in base64."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psycopg


class Hit(NamedTuple):
    """A secret's name, and the file that has it."""

    secret: str
    file: str


def forms(secret: str) -> set[str]:
    """Return the texts by which a secret is found: plain, URL-encoded, and base64 wherever in a longer text it is."""
    found = {secret, quote(secret, safe=""), secret.replace("/", "\\/")}
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + secret.encode()).decode().rstrip("=")
        whole = encoded[-(-before * 4 // 3) :]  # without what the bytes before it change
        whole = whole[: len(whole) - (1 if (before + len(secret.encode())) % 3 else 0)]
        found |= {whole, whole.replace("+", "-").replace("/", "_")}
    return found


class Search:
    """The secrets of a run, and a folder of all that was said during it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "said"
        self.folder.mkdir()
        self.patterns = folder / "patterns"
        self.secrets: dict[str, str] = {}
        self._saving = threading.Lock()
        self._saved = 0

    def secret(self, name: str, value: str) -> str:
        """Add a secret, and return it."""
        assert len(value) >= 16, f"{name} could be found by chance"
        self.secrets[name] = value
        return value

    def save(self, name: str, text: bytes | str) -> None:
        """Keep what was said, to be searched."""
        with self._saving:
            self._saved += 1
            file = self.folder / f"{self._saved:04}-{name}"
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def hits(self, *folders: Path) -> set[Hit]:
        """Return which secrets are in which files of these folders and of what was said."""
        names = {form: name for name, secret in self.secrets.items() for form in forms(secret)}
        self.patterns.touch(0o600)
        self.patterns.write_text("".join(f"{form}\n" for form in names))
        done = subprocess.run(
            ["grep", "-raoF", "--null", "-f", self.patterns, self.folder, *folders],
            capture_output=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        assert done.returncode < 2 or b"No such file" in done.stderr, done.stderr.decode()
        pairs = [line.split(b"\0", 1) for line in done.stdout.splitlines()]
        return {Hit(names[form.decode()], file.decode()) for file, form in pairs}


class Watcher(threading.Thread):
    """Collects the command lines of all processes, and what all database sessions run, until it is stopped."""

    def __init__(self, database_url: str) -> None:
        super().__init__(daemon=True)
        self.database_url = database_url
        self.commands: set[bytes] = set()
        self.statements: set[str] = set()
        self._over = threading.Event()

    def run(self) -> None:
        conn: psycopg.Connection[Any] | None = None
        while not self._over.wait(0.05):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    self.commands.add((process / "cmdline").read_bytes())
                except OSError:  # it has ended
                    continue
            try:
                conn = conn or psycopg.connect(self.database_url, autocommit=True)
                rows = conn.execute("select concat_ws(' ', application_name, query) from pg_stat_activity").fetchall()
                self.statements |= {text for (text,) in rows}
            except psycopg.Error:
                conn = None
        if conn is not None:
            conn.close()

    def stop(self) -> None:
        self._over.set()
        self.join()
