"""Events of the catalogue, their tags and series, and how a category is derived."""

from collections.abc import Sequence
from typing import Any

import msgspec

from upstream.transport.catalogue import slugged
from upstream.transport.numbers import instant

SITE = "https://polymarket.com"

TOPICS = (
    "politics", "elections", "geopolitics", "world", "sports", "esports", "crypto", "finance", "economy", "business",
    "tech", "ai", "science", "weather", "climate", "culture", "pop-culture", "mentions", "health", "games",
)  # fmt: skip
"""The exchange's top-level topics. A market has many tags; the first of these is its category."""


class Tag(msgspec.Struct, gc=False):
    """{"id":"671","label":"jto","slug":"jto",…}; old objects have only the label."""

    label: str | None = None
    slug: str | None = None

    @property
    def name(self) -> str:
        """The slug, else the label as a slug."""
        return self.slug or slugged(self.label or "")


class Series(msgspec.Struct, gc=False):
    """A series, by slug."""

    slug: str | None = None


class GammaEvent(msgspec.Struct, rename="camel", kw_only=True):
    """An event: the question that its markets share. Nested in a market it has no `markets`."""

    id: str | int
    slug: str | None = None
    title: str | None = None
    ticker: str | None = None
    description: str | None = None
    category: str | None = None
    start_date: str | None = None
    start_time: str | None = None
    end_date: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    closed_time: str | None = None
    active: bool | None = None
    closed: bool | None = None
    archived: bool | None = None
    neg_risk: bool | None = None
    enable_neg_risk: bool | None = None
    image: str | None = None
    series: list[Series] | None = None
    series_slug: str | None = None
    tags: list[Tag | str] | None = None
    version: str | None = None
    markets: list[msgspec.Raw] | None = None
    """As sent: `upstream.polymarket.gamma.client.nested_markets` parses them."""

    @property
    def event_id(self) -> str:
        """The id as text."""
        return str(self.id)

    def series_name(self) -> str | None:
        """Return the slug of its series, if it has one."""
        slugs = [series.slug for series in self.series or () if series.slug]
        return slugs[0] if slugs else self.series_slug or None

    def row(self, tags: list[str] | None = None, category: str | None = None) -> dict[str, Any]:
        """Return a row keyed like `sql.tables.events`."""
        named = tags if tags is not None else tag_slugs(self.tags)
        return {
            "event_id": self.event_id,
            "slug": self.slug,
            "title": self.title,
            "category": category if category is not None else topic(self.category, named),
            "series": self.series_name(),
            "tags": named,
            "start_time": instant(self.start_date),
            "end_time": instant(self.end_date),
            "closed": self.closed is True,
            "neg_risk": self.neg_risk is True or self.enable_neg_risk is True,
            "image": self.image or None,
        }


def tag_slugs(tags: Sequence[Tag | str] | None) -> list[str]:
    """Return the tags' slugs without repeats, in order of first appearance."""
    names = (slugged(tag) if isinstance(tag, str) else tag.name for tag in tags or ())
    return list(dict.fromkeys(name for name in names if name))


def topic(category: str | None, tags: list[str]) -> str | None:
    """Return the category: the given one, else the first tag that is a top-level topic, else the first tag."""
    if category and slugged(category):
        return slugged(category)
    for tag in tags:
        if tag in TOPICS:
            return tag
    return tags[0] if tags else None
