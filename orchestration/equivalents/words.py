"""Words and sentences of a market's texts, bounded in length; every step is linear in the text."""

from __future__ import annotations

import re
import unicodedata

# The longest texts of both exchanges' recorded catalogues have some 6,000 characters.
MAX_TEXT = 12_000
MAX_SENTENCES = 120


def listed(text: str) -> frozenset[str]:
    """Return the words of a list that is written as a text."""
    return frozenset(text.split())


PLAIN = {
    **dict.fromkeys(map(ord, "\u2018\u2019"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2013\u2014\u2212"), "-"),
    ord("*"): " ",
    ord("\u2265"): " >= ",
    ord("\u2264"): " <= ",
}
INVISIBLE = frozenset(("Cf", "Cc", "Cs", "Co", "Cn"))
TOKEN = re.compile(r"[\w$%°<>=][\w$%°<>=.,:'/&+#@-]*")
ABBREVIATIONS = listed(
    "u.s u.k u.n d.c a.m p.m jr sr st dr mr mrs no vs v inc corp ltd co sen rep gov feb jan mar apr jun jul aug "
    "sep sept oct nov dec fc"
)


def plain(text: str) -> str:
    """Return a text in one form of quotes, dashes and spaces, without invisible characters."""
    text = unicodedata.normalize("NFKC", text).translate(PLAIN)
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in "\n\t " or unicodedata.category(c) not in INVISIBLE else "" for c in text)


def tokens(text: str) -> list[str]:
    """Return the words of a text as written, without surrounding punctuation."""
    found = []
    for match in TOKEN.finditer(text):
        word = match.group().rstrip(".,:'/&+#@-")
        if word.endswith("'s") and len(word) > 2:
            word = word[:-2]
        if word:
            found.append(word)
    return found


def sentences(text: str) -> list[str]:
    """Split a plain text at full stops, question marks and line ends; not after abbreviations and initials."""
    found: list[str] = []
    start = 0
    for place, char in enumerate(text):
        if char == "\n":
            ends = True
        elif char in ".?!":
            following = text[place + 1 : place + 3].lstrip("\"')")
            ends = not following or following[0].isspace()
            if ends and char == ".":
                before = text[max(start, place - 12) : place].split()
                last = before[-1].lstrip("(\"'").lower() if before else ""
                ends = last not in ABBREVIATIONS and not (len(last) == 1 and last.isalpha())
        else:
            continue
        if ends:
            sentence = text[start : place + 1].strip(" \t\n\"'")
            if any(c.isalnum() for c in sentence):
                found.append(sentence)
            start = place + 1
    rest = text[start:].strip()
    if any(c.isalnum() for c in rest):
        found.append(rest)
    return found
