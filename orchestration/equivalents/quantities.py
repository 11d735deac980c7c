"""Numbers, and ranges of a quantity that pay Yes: bounds inclusive or strict, exact in decimal."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import msgspec

SCALES = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000, "t": 1_000_000_000_000}
MAX_DIGITS = 24


def number(word: str) -> Decimal | None:
    """Return `$91,499.99`, `70%`, `2.5k` or `-3` as a decimal; None for anything else."""
    text = word.lower().removeprefix("$").removesuffix("%").removesuffix("°").removesuffix("+")
    scale = 1
    if text and text[-1] in SCALES:
        scale, text = SCALES[text[-1]], text[:-1]
    sign = text.startswith("-")
    body = text.removeprefix("-")
    if "," in body:
        whole, _, _ = body.partition(".")
        groups = whole.split(",")
        if not all(len(each) == 3 for each in groups[1:]) or not 1 <= len(groups[0]) <= 3:
            return None
        body = body.replace(",", "")
    if not body or len(body) > MAX_DIGITS or not body.isascii() or not body.replace(".", "", 1).isdigit():
        return None
    try:
        found = Decimal(body) * scale
    except InvalidOperation:
        return None
    return -found if sign else found


class Range(msgspec.Struct, frozen=True):
    """The values of a quantity that pay Yes. None is no bound; a count has whole numbers alone."""

    low: Decimal | None = None
    low_strict: bool = False
    high: Decimal | None = None
    high_strict: bool = False
    count: bool = False

    def normal(self) -> Range:
        """Return the same values with inclusive bounds where they are whole numbers: more than 2.5 is 3 or more."""
        if not self.count:
            return self
        low, high = self.low, self.high
        if low is not None:
            below = low.to_integral_value(rounding="ROUND_FLOOR")
            low = below + 1 if self.low_strict or below != low else below
        if high is not None:
            above = high.to_integral_value(rounding="ROUND_CEILING")
            high = above - 1 if self.high_strict or above != high else above
        return Range(low=low, high=high, count=True)

    def within(self, other: Range) -> bool:
        """Say whether every value of this range is one of the other."""
        mine, its = self.normal(), other.normal()
        return _low_inside(mine, its) and _high_inside(mine, its)

    def complements(self, other: Range) -> bool:
        """Say whether each value is in exactly one of both ranges."""
        below, above = self.normal(), other.normal()
        if below.low is not None:
            below, above = above, below
        if below.low is not None or above.high is not None or below.high is None or above.low is None:
            return False
        if self.count and other.count:
            return below.high + 1 == above.low
        return below.high == above.low and below.high_strict != above.low_strict


def _low_inside(mine: Range, its: Range) -> bool:
    if its.low is None:
        return True
    if mine.low is None:
        return False
    return mine.low > its.low or (mine.low == its.low and (mine.low_strict or not its.low_strict))


def _high_inside(mine: Range, its: Range) -> bool:
    if its.high is None:
        return True
    if mine.high is None:
        return False
    return mine.high < its.high or (mine.high == its.high and (mine.high_strict or not its.high_strict))


def compare(how: str, value: Decimal, *, count: bool = False) -> Range | None:
    """Return the range of a comparison in words; None for words that are not known."""
    if how in OVER:
        return Range(low=value, low_strict=True, count=count)
    if how in AT_LEAST:
        return Range(low=value, count=count)
    if how in UNDER:
        return Range(high=value, high_strict=True, count=count)
    if how in AT_MOST:
        return Range(high=value, count=count)
    return None


OVER = frozenset(("above", "over", "greater than", "more than", "higher than", ">", "exceeds"))
AT_LEAST = frozenset(
    ("at least", "at or above", "greater than or equal to", "equal to or greater than", ">=", "no less than")
)
UNDER = frozenset(("below", "under", "less than", "lower than", "fewer than", "<"))
AT_MOST = frozenset(("at most", "at or below", "less than or equal to", "equal to or less than", "<=", "no more than"))
