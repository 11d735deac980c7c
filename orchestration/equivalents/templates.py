"""Sentence templates: literal words, slots and options, matched over whole sentences within a budget of steps.

`if {person} (wins|has_won) the {year} [general] election`: a slot takes one to twelve words, `(a|b)` is one of the
alternatives (`_` joins words; `(how:a|b)` keeps which), `[word]` may be missing, `{any*}` takes up to 48 words of any
kind. There are no regular expressions: a match costs at most
words times items times twelve steps, and the budget of a text ends it before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from orchestration.equivalents.words import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SLOT = 12  # words
MAX_STEPS = 20_000  # of all templates over all sentences of a market; of 9,832 recorded ones none took more than 520
# A slot with one of these would hide a condition: `{person}` must not be "A or B", nor `{date}` "June unless …".
LOGIC = listed("and or unless except not no if either neither without but only nor any all than")

Spans = dict[str, tuple[int, int]]  # slot → its words, from and until
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

    def match(self, words: Sequence[str], budget: Budget) -> Spans | None:
        """Return the spans of the slots if the whole sentence matches, the shortest slots first."""
        return Matching(self.items, words, budget).walk(0, 0)


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


class Matching:
    """One template over one sentence: places from which the rest did not match are not tried again."""

    def __init__(self, items: tuple[Item, ...], words: Sequence[str], budget: Budget) -> None:
        self.items, self.words, self.budget = items, words, budget
        self.failed: set[tuple[int, int]] = set()

    def walk(self, item: int, word: int) -> Spans | None:
        """Match the items from `item` on with the words from `word` on, to the end of both."""
        self.budget.spend(1)
        if item == len(self.items):
            return {} if word == len(self.words) else None
        if (item, word) in self.failed:
            return None
        kind, name, options = self.items[item]
        if kind == "word":
            same = word < len(self.words) and self.words[word] == name
            found = self.walk(item + 1, word + 1) if same else None
        elif kind == "slot":
            found = self.slot(name, item, word)
        else:
            found = self.option(name, options, item, word)
            if found is None and kind == "maybe":
                found = self.walk(item + 1, word)
        if found is None:
            self.failed.add((item, word))
        return found

    def option(self, name: str, options: tuple[tuple[str, ...], ...], item: int, word: int) -> Spans | None:
        """Match one of the alternatives, and the rest."""
        for option in options:
            end = word + len(option)
            if tuple(self.words[word:end]) == option:
                found = self.walk(item + 1, end)
                if found is not None:
                    return {**found, name: (word, end)} if name else found
        return None

    def slot(self, name: str, item: int, word: int) -> Spans | None:
        """Match a slot, as short as the rest allows."""
        free = name.endswith("*")
        for end in range(word + 1, min(len(self.words), word + (4 if free else 1) * MAX_SLOT) + 1):
            self.budget.spend(1)
            if not free and self.words[end - 1] in LOGIC:
                return None
            found = self.walk(item + 1, end)
            if found is not None:
                return {**found, name.rstrip("*"): (word, end)}
        return None
