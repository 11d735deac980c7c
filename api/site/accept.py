"""Content negotiation between HTML and Markdown, by the Accept header's quality values (RFC 9110, 12.5.1)."""

from __future__ import annotations

import re
from typing import NamedTuple

MARKDOWN, HTML = "text/markdown", "text/html"
MAX_RANGES = 64
_WEIGHT = re.compile(r"(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\Z")


class Weight(NamedTuple):
    """A media type's quality, and how precisely it was named: 0 not at all, 1 by `*/*`, 2 by `text/*`, 3 exactly."""

    quality: float
    named: int


def prefers_markdown(accept: str | None) -> bool:
    """Return whether Markdown is preferred to HTML, or equal and named exactly, which no browser does."""
    if not accept:
        return False
    markdown, html = weight(accept, MARKDOWN), weight(accept, HTML)
    if markdown.quality == html.quality:
        return markdown.quality > 0 and markdown.named == 3
    return markdown.quality > html.quality


def weight(accept: str, kind: str) -> Weight:
    """Return a media type's weight; the most precise range that covers it counts."""
    group = kind.partition("/")[0]
    ranks = {"*/*": 1, f"{group}/*": 2, kind: 3}
    found = Weight(0.0, 0)
    for given in accept.split(",")[:MAX_RANGES]:
        name, *parameters = (part.strip().lower() for part in given.split(";"))
        rank = ranks.get(name, 0)
        quality = _quality(parameters)
        if quality is not None and rank > found.named:
            found = Weight(quality, rank)
    return found


def _quality(parameters: list[str]) -> float | None:
    """Return the `q` parameter, 1 by default; None if malformed, and the range is then ignored."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            value = value.strip()
            return float(value) if _WEIGHT.match(value) else None
    return 1.0
