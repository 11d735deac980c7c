"""Sentence templates: literal words, slots and options, matched over whole sentences within a budget of steps.

`if {person} (wins|has_won) the {year} [general] election`: a slot takes one to twelve words, `(a|b)` is one of the
alternatives (`_` joins words; `(how:a|b)` keeps which), `[word]` may be missing, `{any*}` takes up to 48 words of any
kind. There are no regular expressions: a match costs at most
words × items × twelve steps, and the budget of a text ends it before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SLOT = 12  # words
MAX_STEPS = 20_000  # of all templates over all sentences of a market; of 9,832 recorded ones none took more than 520
# A slot with one of these would hide a condition: `{person}` must not be "A or B", nor `{date}` "June unless …".
LOGIC = frozenset("and or unless except not no if either neither without but only nor any all than".split())

Item = tuple[str, str, tuple[tuple[str, ...], ...]]  # kind, name, options


class BudgetError(Exception):
    """A text needs more steps than are allowed: it is not read."""


class Budget:
    """Steps that are left for a market's texts."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take steps away, or raise `BudgetError`."""
        self.left -= steps
        if self.left < 0:
            raise BudgetError


class Template(msgspec.Struct, frozen=True):
    """A compiled template: its items, and the literal words that every match has."""

    text: str
    items: tuple[Item, ...]
    needed: frozenset[str]

    def match(self, words: Sequence[str], budget: Budget) -> dict[str, tuple[int, int]] | None:
        """Return the spans of the slots if the whole sentence matches, the shortest slots first."""
        return _match(self.items, words, budget)


def template(text: str) -> Template:
    """Compile a template."""
    items: list[Item] = []
    needed = set()
    for part in text.split():
        if part[0] == "{":
            items.append(("slot", part[1:-1], ()))
        elif part[0] in "([":
            name, _, options = part[1:-1].rpartition(":")
            kind = "one" if part[0] == "(" else "maybe"
            items.append((kind, name, tuple(tuple(each.split("_")) for each in options.split("|"))))
        else:
            items.append(("word", part, ()))
            needed.add(part)
    return Template(text, tuple(items), frozenset(needed))


def _match(items: tuple[Item, ...], words: Sequence[str], budget: Budget) -> dict[str, tuple[int, int]] | None:
    failed: set[tuple[int, int]] = set()

    def walk(item: int, word: int) -> dict[str, tuple[int, int]] | None:
        budget.spend(1)
        if item == len(items):
            return {} if word == len(words) else None
        if (item, word) in failed:
            return None
        kind, name, options = items[item]
        found = None
        if kind == "word":
            if word < len(words) and words[word] == name:
                found = walk(item + 1, word + 1)
        elif kind == "slot":
            found = slot(name, item, word)
        else:
            for option in options:
                if tuple(words[word : word + len(option)]) == option:
                    found = walk(item + 1, word + len(option))
                    if found is not None:
                        if name:
                            found[name] = (word, word + len(option))
                        break
            if found is None and kind == "maybe":
                found = walk(item + 1, word)
        if found is None:
            failed.add((item, word))
        return found

    def slot(name: str, item: int, word: int) -> dict[str, tuple[int, int]] | None:
        free = name.endswith("*")
        for end in range(word + 1, min(len(words), word + (4 if free else 1) * MAX_SLOT) + 1):
            budget.spend(1)
            if not free and words[end - 1] in LOGIC:
                return None
            found = walk(item + 1, end)
            if found is not None:
                found[name.rstrip("*")] = (word, end)
                return found
        return None

    return walk(0, 0)
