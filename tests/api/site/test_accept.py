"""Negotiation of Markdown: by quality values, by precision, and by exact name when the quality is equal."""

from __future__ import annotations

import pytest

from api.site.accept import Weight, prefers_markdown, weight

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "markdown"),
    [
        (None, False),
        ("", False),
        ("*/*", False),
        ("text/*", False),
        (BROWSER, False),
        ("text/html", False),
        ("application/json", False),
        ("text/markdown", True),
        ("TEXT/Markdown", True),
        ("text/markdown, */*", True),
        ("text/markdown, text/html, */*", True),
        ("text/html, text/markdown", True),
        ("text/markdown;q=0.9, text/html;q=0.8", True),
        ("text/markdown;q=0.8, text/html;q=0.9", False),
        ("text/markdown;q=0.8, text/html", False),
        ("text/markdown;q=0.5, text/html;q=0.5", True),
        ("text/markdown;q=0", False),
        ("text/markdown;q=0, */*", False),
        ("text/markdown;q=0.000, text/html;q=0.001", False),
        ("text/html;q=0, */*", True),
        ("text/html;q=0.5, */*", True),
        ("text/html;q=0.5, text/*", True),
        ("text/*;q=0.5, text/html;q=0.1", True),
        ("*/*;q=0.1, text/markdown;q=0.2", True),
        ("*/*;q=0.3, text/markdown;q=0.2", False),
        ("text/markdown;variant=GFM", True),
        ("text/markdown; charset=utf-8; q=0.4, text/html; q=0.3", True),
        ("text/markdown;q=1.000, text/html;q=0.999", True),
        ("text/markdown;q=2", False),
        ("text/markdown;q=abc", False),
        ("text/markdown;q=", False),
        ("text/markdown;q=0.1234, text/html;q=0.1", False),
        ("text/markdown ; q=0.7 , text/html ; q=0.6", True),
        (",,;;, text/markdown", True),
        ("text/markdownx", False),
        ("application/xhtml+xml, text/markdown;q=0.1", True),
    ],
)
def test_the_table_of_quality_values(accept, markdown):
    assert prefers_markdown(accept) is markdown


def test_the_most_precise_range_counts_wherever_it_stands():
    assert weight("text/html;q=0.1, text/*;q=0.5, */*;q=0.9", "text/html") == Weight(0.1, 3)
    assert weight("*/*;q=0.9, text/*;q=0.5", "text/html") == Weight(0.5, 2)


def test_a_list_without_end_is_not_read_to_its_end():
    assert not prefers_markdown("a/b," * 100 + "text/markdown")
