"""Synthetic catalogues of two exchanges' titles, with pairs that ask the same planted among look-alikes."""

from __future__ import annotations

import random

from orchestration.equivalents.words import listed

SEED = 17
CITIES = sorted(
    listed(
        "Austin Boston Chicago Dallas Denver Houston Miami Minneapolis Nashville Phoenix Portland Seattle Tampa Tucson"
    )
)
STATES = sorted(
    listed(
        "AL AZ CA CO CT FL GA IA IL IN KS KY LA MA MD ME MI MN MO NC NE NH NJ NM NV NY OH OR PA SC TN TX UT VA WA WI"
    )
)
ASSETS = ("Bitcoin", "Ethereum", "Solana", "XRP", "Dogecoin", "Gold", "Silver", "Oil")
MONTHS = sorted(listed("January February March April May June July August September October November December"))
SYLLABLES = sorted(
    listed(
        "ba be bo ca ce da de do fa fi ga go ha he ja ka la le li lo ma me mi na ne no pa pe ra re ri ro sa se ta te "
        "va vi za"
    )
)
ACTS = (
    "resign",
    "be indicted",
    "visit Moscow",
    "announce a run",
    "sign the bill",
    "release an album",
    "win the award",
    "go public",
)


def _name(chance: random.Random) -> str:
    return "".join(chance.choices(SYLLABLES, k=chance.randint(2, 3))).title()


def _question(chance: random.Random, people: list[str]) -> tuple[str, str]:
    """Return one question in the wording of each exchange."""
    kind = chance.randrange(6)
    month, day, year = chance.choice(MONTHS), chance.randint(1, 28), chance.randint(2026, 2028)
    who = chance.choice(people)
    if kind == 0:
        seat = f"{chance.choice(STATES)}-{chance.randint(1, 40)}"
        party = chance.choice(("Democratic", "Republican"))
        return f"Will {who} be the {party} nominee for {seat}?", f"Who will be the {party} nominee for {seat}? {who}"
    if kind == 1:
        asset, price = chance.choice(ASSETS), chance.randint(1, 4_000) * 25
        return (
            f"Will the price of {asset} be above ${price:,} on {month} {day}, {year}?",
            f"{asset} price on {month[:3]} {day}, {year}? Above ${price:,}",
        )
    if kind == 2:
        city, low = chance.choice(CITIES), chance.randint(20, 105)
        return (
            f"Will the highest temperature in {city} be between {low}-{low + 1}°F on {month} {day}, {year}?",
            f"Highest temperature in {city} on {month[:3]} {day}, {year}? {low}° to {low + 1}°",
        )
    if kind == 3:
        other = chance.choice(people)
        return (
            f"{who.split()[1]} vs. {other.split()[1]} {year}-{day:02}",
            f"{who.split()[1]} at {other.split()[1]}? {month[:3]} {day}",
        )
    if kind == 4:
        act = chance.choice(ACTS)
        return f"Will {who} {act} by {month} {day}, {year}?", f"Will {who} {act} before {month[:3]} {day}, {year}?"
    return (
        f"Will {who} win the {year} {_name(chance)} presidential election?",
        f"Who will win the next presidential election in {year}? {who}",
    )


def catalogues(left: int, right: int, planted: int) -> tuple[list[str], list[str], list[tuple[int, int]]]:
    """Return the titles of both catalogues, and the places of the pairs that ask the same."""
    chance = random.Random(SEED)  # noqa: S311 (an example)
    people = [f"{_name(chance)} {_name(chance)}" for _ in range(max(500, left // 20))]
    pairs = [_question(chance, people) for _ in range(planted)]
    ours = [mine for mine, _ in pairs] + [_question(chance, people)[0] for _ in range(left - planted)]
    theirs = [its for _, its in pairs] + [_question(chance, people)[1] for _ in range(right - planted)]
    left_places, right_places = list(range(left)), list(range(right))
    chance.shuffle(left_places)
    chance.shuffle(right_places)
    shuffled_ours, shuffled_theirs = [""] * left, [""] * right
    for place, text in zip(left_places, ours, strict=True):
        shuffled_ours[place] = text
    for place, text in zip(right_places, theirs, strict=True):
        shuffled_theirs[place] = text
    return shuffled_ours, shuffled_theirs, list(zip(left_places[:planted], right_places[:planted], strict=True))
