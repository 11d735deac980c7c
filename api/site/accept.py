"""Which of HTML and Markdown a request prefers, by the quality values of its Accept header (RFC 9110, 12.5.1)."""

from __future__ import annotations

import re
from typing import NamedTuple

MARKDOWN, HTML = "text/markdown", "text/html"
MOST_RANGES = 64
_WEIGHT = re.compile(r"(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\Z")


class Weight(NamedTuple):
    """How much a kind is wanted, and how precisely it was named: 0 not at all, 1 by `*/*`, 2 by `text/*`, 3 itself."""

    quality: float
    named: int


def prefers_markdown(accept: str | None) -> bool:
    """Tell whether Markdown is wanted: more than HTML, or as much and by its name, which no browser does."""
    if not accept:
        return False
    markdown, html = weight(accept, MARKDOWN), weight(accept, HTML)
    if markdown.quality == html.quality:
        return markdown.quality > 0 and markdown.named == 3
    return markdown.quality > html.quality


def weight(accept: str, kind: str) -> Weight:
    """Say how much a kind is wanted; the most precise range that covers it counts."""
    group = kind.partition("/")[0]
    ranks = {"*/*": 1, f"{group}/*": 2, kind: 3}
    found = Weight(0.0, 0)
    for given in accept.split(",")[:MOST_RANGES]:
        name, *parameters = (part.strip().lower() for part in given.split(";"))
        rank = ranks.get(name, 0)
        quality = _quality(parameters)
        if quality is not None and rank > found.named:
            found = Weight(quality, rank)
    return found


def _quality(parameters: list[str]) -> float | None:
    """Read the weight; a range whose weight is malformed counts for nothing."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            value = value.strip()
            return float(value) if _WEIGHT.match(value) else None
    return 1.0
