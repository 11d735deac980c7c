"""Python source text: names, sentences and docstrings."""

from __future__ import annotations

import keyword
import re
import textwrap

HEAD = '"""{title}\n\nGenerated from the OpenAPI document: do not edit; run `make client`.\n"""\n'
WIDTH = 116  # of a line, its indent included


def python_name(name: str) -> str:
    """Return a parameter's name in Python."""
    snake = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def sentence(text: str) -> str:
    """Return a text with a mark at its end."""
    return text if text.endswith((".", ":", "!", "?")) else f"{text}."


def docstring(lines: list[str], indent: int) -> str:
    """Return a docstring: its first line whole if it fits, the others as they are."""
    first, *rest = [line.replace("\\", "\\\\").replace('"""', "'''") for line in lines]
    margin = " " * indent
    if len(first) > WIDTH - indent:
        first, *tail = textwrap.wrap(first, WIDTH - indent)
        rest = [*tail, *rest]
    if not rest:
        return f'{margin}"""{first}{" " if first.endswith(chr(34)) else ""}"""\n'
    body = "".join(f"{margin}{line}\n" if line else "\n" for line in rest)
    return f'{margin}"""{first}\n{body}{margin}"""\n'
