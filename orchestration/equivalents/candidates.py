"""Candidates: pairs of markets of two catalogues that may ask the same, found by their words before any is judged.

Two catalogues of 200,000 and 84,000 markets have 17 thousand million pairs. Each market is filed under its keys, which
are its rarest words, numbers and seats (and pairs of less rare ones); only pairs under one key are compared, by
rapidfuzz, and the best of each market are kept. A key with too many markets is no key: it says nothing.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter, defaultdict
from itertools import combinations
from typing import TYPE_CHECKING

import msgspec
from rapidfuzz import fuzz

from orchestration.equivalents import names, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from orchestration.equivalents.questions import MarketText

MAX_TITLE = 400  # characters of a title that are looked at
MAX_WORDS = 24  # of a title
RAREST = 4  # words of a market that make keys, alone and in pairs
MAX_FILED = 200  # markets of one catalogue under a key
MAX_COMPARED = 40  # markets that one is compared with
KEPT = 5  # candidates of a market
MIN_SCORE = 55.0  # of 100


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """Two markets by their place in the catalogues, and how alike their titles are, from 0 to 100."""

    left: int
    right: int
    score: float


def title(market: MarketText) -> str:
    """Return what a market is compared by: its title, with its label where the title does not name it."""
    label = "" if market.label.lower() in market.title.lower() else f" {market.label}"
    return f"{market.title}{label}"[:MAX_TITLE]


def forms(text: str) -> tuple[str, ...]:
    """Return the words of a title in one form each, in order, without those that say nothing."""
    found = []
    for word in words.tokens(words.plain(text[:MAX_TITLE]))[:MAX_WORDS]:
        form = names.seat(word) or names.folded([word])
        form = names.PARTIES.get(form, names.PLACES.get(form, form))
        if form and (form not in names.COMMON or form in names.PARTIES):
            found.append(form.lstrip("$").replace(",", ""))
    return tuple(found)


def candidates(left: Sequence[str], right: Sequence[str]) -> Iterator[Candidate]:
    """Yield the best candidates of each market on the left, by the titles of both catalogues."""
    ours, theirs = [forms(each) for each in left], [forms(each) for each in right]
    counts = Counter(word for each in (*ours, *theirs) for word in set(each))
    filed: dict[int, array[int]] = defaultdict(lambda: array("I"))
    for place, each in enumerate(theirs):
        for key in _keys(each, counts):
            filed[key].append(place)
    sorted_theirs = [" ".join(sorted(each)) for each in theirs]
    for place, each in enumerate(ours):
        yield from _best(place, each, _met(_keys(each, counts), filed), sorted_theirs)


def _keys(forms: Iterable[str], counts: Counter[str]) -> list[int]:
    """Return a market's keys, the rarest first: hashes, of which a collision costs a comparison and no more."""
    rare = sorted({form for form in forms if form}, key=lambda form: (counts[form], form))[:RAREST]
    return [hash(form) for form in rare] + [hash(pair) for pair in combinations(sorted(rare), 2)]


def _met(keys: Iterable[int], filed: dict[int, array[int]]) -> list[int]:
    """Return the markets under the same keys, those under the most and rarest first."""
    met: dict[int, float] = defaultdict(float)
    for key in keys:
        under = filed.get(key)
        if under is not None and len(under) <= MAX_FILED:
            weight = 1 / len(under)
            for place in under:
                met[place] += weight
    return heapq.nlargest(MAX_COMPARED, met, key=lambda place: (met[place], -place))


def _best(place: int, forms: Iterable[str], met: Iterable[int], titles: Sequence[str]) -> Iterator[Candidate]:
    mine = " ".join(sorted(forms))
    found = []
    for other in met:
        score = fuzz.token_set_ratio(mine, titles[other], score_cutoff=MIN_SCORE)
        if score:
            found.append((-(score + fuzz.ratio(mine, titles[other])) / 2, other))
    for score, other in sorted(found)[:KEPT]:
        yield Candidate(place, other, round(-score, 1))
