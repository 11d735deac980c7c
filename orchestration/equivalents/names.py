"""Names in one form: parties, seats, states, places, titles, persons, series of values."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from orchestration.equivalents.words import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PARTIES = {
    "democratic": "democratic",
    "democrat": "democratic",
    "democrats": "democratic",
    "democratic dfl": "democratic",
    "republican": "republican",
    "republicans": "republican",
}
STATES = frozenset(
    each.replace("_", " ")
    for each in listed(
        "alabama alaska arizona arkansas california colorado connecticut delaware florida georgia hawaii idaho "
        "illinois indiana iowa kansas kentucky louisiana maine maryland massachusetts michigan minnesota mississippi "
        "missouri montana nebraska nevada new_hampshire new_jersey new_mexico new_york north_carolina north_dakota "
        "ohio oklahoma oregon pennsylvania rhode_island south_carolina south_dakota tennessee texas utah vermont "
        "virginia washington west_virginia wisconsin wyoming"
    )
)
POSTAL = listed(
    "al ak az ar ca co ct de fl ga hi id il in ia ks ky la me md ma mi mn ms mo mt ne nv nh nj nm ny nc nd oh ok "
    "or pa ri sc sd tn tx ut vt va wa wv wi wy"
)
# Demonyms and countries, where an exchange uses one and the other the other.
PLACES = dict(
    each.split(":", 1)
    for each in listed(
        "brazilian:brazil nigerian:nigeria peruvian:peru colombian:colombia argentine:argentina "
        "philippine:philippines french:france turkish:turkey ghanaian:ghana zambian:zambia chilean:chile "
        "bolivian:bolivia polish:poland portuguese:portugal bulgarian:bulgaria honduran:honduras ecuadorian:ecuador "
        "korean:korea romanian:romania kenyan:kenya mexican:mexico irish:ireland ugandan:uganda iranian:iran "
        "israeli:israel hungarian:hungary austrian:austria czech:czechia dutch:netherlands norwegian:norway "
        "german:germany"
    )
)
TITLES = {
    "nba finals": "nba title",
    "pro basketball finals": "nba title",
    "nba championship": "nba title",
    "stanley cup": "nhl title",
    "pro hockey championship": "nhl title",
    "world series": "mlb title",
    "pro baseball championship": "mlb title",
}
# Sports that play on until somebody wins.
NO_TIES = listed("mlb nba wnba nhl baseball basketball hockey tennis atp wta")


def folded(words: Iterable[str]) -> str:
    """Return words in lower case without accents, hyphens and dots, joined by spaces."""
    text = unicodedata.normalize("NFKD", " ".join(words).lower().replace("-", " ").replace(".", ""))
    return " ".join("".join(c for c in text if not unicodedata.combining(c)).split())


def seat(word: str) -> str | None:
    """Return a seat of the House as `az-5`; None for anything else."""
    state, _, number = word.lower().partition("-")
    if state not in POSTAL:
        return None
    if number in {"al", "at-large"}:
        return f"{state}-al"
    if not (number.isascii() and number.isdigit() and 1 <= len(number) <= 2 and int(number) > 0):
        return None
    return f"{state}-{int(number)}"


def place(words: Sequence[str]) -> str:
    """Return a country or city in one form."""
    name = folded(words).removeprefix("the ")
    return PLACES.get(name, name)


def series(words: Sequence[str]) -> str:
    """Return a source of values in one form: CF Benchmarks' indices by their symbol."""
    name = folded(words)
    for symbol in name.split():
        if symbol in {"brti", "ethusd_rti", "solusd_rti", "xrpusd_rti"}:
            return symbol
    return name.removeprefix("https://").removeprefix("www").removesuffix(" 24h")


# Words that begin with a capital without being a name of what a question is about.
COMMON = listed(
    "a act after all an any are as at be before being between both but by can candidate candidates closes "
    "contract do does during each early either election elections et etc every exchange first following for from "
    "general governor has have he her his house how i if in is issuance it its january february march april may "
    "june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec market "
    "markets may more most new next no not note of on or other otherwise party payout please polymarket kalshi "
    "president presidential primary professional purposes qualifying release resolution resolves results "
    "scheduled season senate senator she source state states such than that the their there these they this those "
    "to u.s united up us was we what when where whether which who will win winner with within yes yet you pm am "
    "est edt democrat democratic republican republicans democrats national official information video 50-50 http "
    "https congressional district representatives midterm midterms nominee america american federal government "
    "criterion expiration date above below only"
)


def proper(words: Iterable[str]) -> frozenset[str]:
    """Return the words that look like names: capitals, and words with both letters and digits; folded."""
    return frozenset(
        folded([word])
        for word in words
        if (word[0].isupper() or (any(map(str.isdigit, word)) and any(map(str.isalpha, word))))
        and word.lower() not in COMMON
        and len(word) > 1
    )


# Words of titles that say little of what a question is about.
WEAK = listed(
    "another become called company country during finish happen highest increase leading number officially places "
    "player popular position record released release representative requires result season second series "
    "tournament winning winner championship mayoral gubernatorial parliamentary seats leave before reach announce "
    "million billion percent greater"
)


def topics(title: Iterable[str]) -> frozenset[str]:
    """Return the long words of a title that may say what the question is about, folded."""
    return frozenset(
        folded([word])
        for word in title
        if len(word) >= 6 and word.isalpha() and word.lower() not in COMMON and word.lower() not in WEAK
    )
