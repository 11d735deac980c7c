"""Full-text search of the documentation."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from api.site.guides import Guide

HEADING = re.compile(r"^#{1,4} +(.+?) *$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)  # a shell comment looks like a heading
WORD = re.compile(r"[\w./-]{2,}")
EXCERPT = 600  # characters


@dataclass(frozen=True)
class Passage:
    """A section found by a search."""

    page: str
    uri: str
    section: str
    excerpt: str


def uri(guide: Guide) -> str:
    """Return a page's resource URI."""
    return f"docs://{guide.name}"


def search(guides: Iterable[Guide], query: str, limit: int) -> list[Passage]:
    """Return the sections that contain most of the words, matches in the heading first."""
    words = {word.lower() for word in WORD.findall(query)}
    ranked = []
    for guide in guides:
        for section, text in sections(guide.text):
            heading, body = f"{guide.title} {section}".lower(), text.lower()
            matched = sum(word in heading or word in body for word in words)
            score = matched, sum(word in heading for word in words), sum(min(body.count(word), 5) for word in words)
            if matched:
                ranked.append((score, Passage(guide.name, uri(guide), section, _excerpt(text, words))))
    ranked.sort(key=lambda each: each[0], reverse=True)
    return [passage for _, passage in ranked[:limit]]


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Split a page at its headings; yield each heading and its text."""
    without_code = CODE.sub(lambda code: " " * len(code[0]), text)
    places = [(heading[1], heading.start(), heading.end()) for heading in HEADING.finditer(without_code)]
    for (heading, _, begin), (_, end, _) in itertools.pairwise([*places, ("", len(text), 0)]):
        yield heading, text[begin:end].strip()


def _excerpt(text: str, words: set[str]) -> str:
    """Return an excerpt around the first match."""
    places = [place for word in words if (place := text.lower().find(word)) >= 0]
    begin = max(0, min(places, default=0) - EXCERPT // 4)
    return text[begin : begin + EXCERPT].strip()
