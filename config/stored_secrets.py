"""Files from which programs read secrets, and in which a command may replace one: `.env` and libpq's password file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from config import secret_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def assign(file: Path, values: Mapping[str, str]) -> None:
    """Assign variables in a file such as `.env`, which need not exist; all its other lines stay as they are."""
    text = file.read_text() if file.exists() else ""
    for name, value in values.items():
        assignment = re.compile(rf"^([ \t]*(?:export[ \t]+)?{name}[ \t]*=).*$", re.MULTILINE)
        text, found = assignment.subn(lambda line, value=value: f"{line[1]}{value}", text)  # type: ignore[misc]
        if not found:
            text += f"{'' if text.endswith(chr(10)) or not text else chr(10)}{name}={value}\n"
    _replace(file, text)


def set_password(file: Path, role: str, password: str) -> None:
    """Replace a role's password in a password file (`host:port:database:user:password`), for all its servers."""
    name = re.escape(re.sub(r"([:\\])", r"\\\1", role))
    line = re.compile(rf"^(?!#)((?:(?:[^:\\\n]|\\.)*:){{3}}{name}:).*$", re.MULTILINE)
    text, found = line.subn(lambda line: line[1] + re.sub(r"([:\\])", r"\\\1", password), file.read_text())
    if not found:
        raise ValueError(f"{file} has no line for the user {role}")
    _replace(file, text)


def _replace(file: Path, text: str) -> None:
    secret_files.write(file, text, file.stat() if file.exists() else None)  # who could read it, can
