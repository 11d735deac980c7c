"""Judge: how the questions of two markets relate, by the clauses that were read of them, and the clause that decided.

It fails closed. `identical` and `inverted` need every sentence of both texts read and every clause equal; with one
clause unread the verdict is `unreadable`, unless a clause that was read on both sides already tells them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
from rapidfuzz import fuzz

from orchestration.equivalents import reader
from orchestration.equivalents.questions import ClauseName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestration.equivalents.questions import MarketText, Payout, Question, Reading

RULES_VERSION = 1  # raised when a rule, a template or a table of names changes; each verdict carries it

Class = Literal["identical", "inverted", "subset", "related", "different", "unreadable"]
Side = Literal["left", "right"]
Relation = Literal["equal", "complement", "left within right", "right within left", "apart"]

# States in which a question that does not mention them pays No: what it asks for has not come about.
NOT_COME_ABOUT = frozenset(("nobody", "not held"))
NEAR = 80  # similarity of two names that may be one name, written in two ways


class Verdict(msgspec.Struct, frozen=True):
    """How the Yes of two markets relate. `within`: the side whose Yes implies the other's, of a subset."""

    verdict: Class
    clause: ClauseName | None  # None where all clauses are equal
    detail: str
    within: Side | None = None
    rules_version: int = RULES_VERSION


def judge(left: MarketText, right: MarketText) -> Verdict:
    """Read two markets' texts and judge them."""
    return judge_readings(reader.read(left), reader.read(right))


def judge_readings(left: Reading, right: Reading) -> Verdict:
    """Judge two markets whose texts have been read."""
    one, other = left.question, right.question
    if one is None or other is None:
        if left.names and right.names and not _shared(left.names, right.names):
            return Verdict("different", "subject", "no name stands in both texts")
        side, reading = ("left", left) if one is None else ("right", right)
        return _unreadable(side, reading)
    apart = _events(one, other) or _subjects(one, other)
    if apart is not None:
        return apart
    for side, reading in (("left", left), ("right", right)):
        if reading.unread:
            return _unreadable(side, reading)
    return _combine(one, other, list(_relations(one, other)))


def _unreadable(side: str, reading: Reading) -> Verdict:
    unread = reading.unread[0]
    return Verdict("unreadable", unread.clause, f"{side}: {unread.text}")


def _shared(left: frozenset[str], right: frozenset[str]) -> bool:
    """Say whether a name stands in both, also as part of a longer one or in another spelling."""
    if left & right:
        return True
    return any(a in b or b in a or fuzz.ratio(a, b) >= NEAR for a in left if len(a) > 2 for b in right if len(b) > 2)


def _events(left: Question, right: Question) -> Verdict | None:
    one, other = dict(left.event), dict(right.event)
    if one["kind"] != other["kind"]:
        # The same race: its nomination and its election.
        same = one["kind"].split()[0] == other["kind"].split()[0] and "place" in one
        same = same and (one.get("place"), one.get("year")) == (other.get("place"), other.get("year"))
        return Verdict("related" if same else "different", "event", f"{one['kind']} / {other['kind']}")
    differing = [name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]
    if differing:
        name = differing[0]
        if name == "place" and _near(one.get(name, ""), other.get(name, "")):
            return Verdict("unreadable", "event", f"{one.get(name)} / {other.get(name)}: perhaps one name")
        clause: ClauseName = "window" if set(differing) <= {"year", "day", "period"} else "event"
        return Verdict("different", clause, f"{one.get(name)} / {other.get(name)}")
    if left.happening != right.happening:
        return Verdict("related", "event", f"{left.happening} / {right.happening}")
    return None


def _near(left: str, right: str) -> bool:
    """Say whether two places may be one, misspelt: never two that differ in a digit."""
    digits = [c for c in left if c.isdigit()] != [c for c in right if c.isdigit()]
    return not digits and len(left) > 4 and len(right) > 4 and fuzz.ratio(left, right) >= 88


def _subjects(left: Question, right: Question) -> Verdict | None:
    if left.subject == right.subject or (left.rival and (left.subject, left.rival) == (right.rival, right.subject)):
        return None
    if fuzz.ratio(left.subject, right.subject) >= NEAR or _contained(left.subject, right.subject):
        return Verdict("unreadable", "subject", f"{left.subject} / {right.subject}: perhaps one name")
    return Verdict("related", "subject", f"{left.subject} / {right.subject}")


def _contained(left: str, right: str) -> bool:
    one, other = set(left.split()), set(right.split())
    return one <= other or other <= one


def _relations(left: Question, right: Question) -> Iterator[tuple[ClauseName, Relation, str]]:
    if left.rival and left.subject != right.subject:
        yield "subject", "complement", f"{left.subject} / {right.subject}"
    yield "threshold", _thresholds(left, right), f"{left.threshold} / {right.threshold}"
    yield "source", "equal" if left.source == right.source else "apart", f"{left.source} / {right.source}"
    yield "window", _windows(left, right), f"{left.window} / {right.window}"
    yield from _voids(left, right)
    if left.polarity != right.polarity:
        yield "polarity", "complement", "one asks whether it does not happen"


def _thresholds(left: Question, right: Question) -> Relation:
    one, other = left.threshold, right.threshold
    if one is None or other is None:
        return "equal" if one is other else "apart"
    if one.count != other.count:
        return "apart"
    if one.normal() == other.normal():
        return "equal"
    if one.complements(other) or other.complements(one):
        # Within a window both may come true: the price was above and, at another time, below.
        return "apart" if left.at_once else "complement"
    return "left within right" if one.within(other) else "right within left" if other.within(one) else "apart"


def _windows(left: Question, right: Question) -> Relation:
    one, other = left.window, right.window
    if one == other:
        return "equal"
    if not (left.at_once and right.at_once):
        return "apart"
    return "left within right" if one.within(other) else "right within left" if other.within(one) else "apart"


def _voids(left: Question, right: Question) -> Iterator[tuple[ClauseName, Relation, str]]:
    """Compare what is paid in the states that either text foresees."""
    one, other = dict(left.void), dict(right.void)
    for state in sorted(one.keys() | other.keys()):
        if state.startswith("late "):
            continue
        mine = one.get(state, "no" if state in NOT_COME_ABOUT else None)
        its = other.get(state, "no" if state in NOT_COME_ABOUT else None)
        same = mine is not None and mine == its
        yield "void", "equal" if same else "apart", f"{state}: {mine or 'not said'} / {its or 'not said'}"
    latest = [min((s for s in each if s.startswith("late ")), default="") for each in (one, other)]
    if latest[0] != latest[1]:
        # Who sets a last day pays No after it; who sets none goes on waiting.
        left_first = bool(latest[0]) and (not latest[1] or latest[0] < latest[1])
        relation: Relation = "left within right" if left_first else "right within left"
        yield "window", relation, f"{latest[0] or 'no last day'} / {latest[1] or 'no last day'}"


def _combine(left: Question, right: Question, found: list[tuple[ClauseName, Relation, str]]) -> Verdict:
    unequal = [each for each in found if each[1] != "equal"]
    for clause, relation, detail in unequal:
        if relation == "apart":
            return Verdict("related", clause, detail)
    if not unequal:
        return Verdict("identical", None, "every clause is equal")
    clause, relation, detail = unequal[0]
    relations = {each[1] for each in unequal}
    if relations == {"complement"}:
        return _inverted(left, right, clause, detail, flips=len(unequal))
    if len(relations) > 1:
        return Verdict("related", clause, detail)
    inside: Side = "left" if relation == "left within right" else "right"
    if not left.polarity:
        inside = "right" if inside == "left" else "left"
    return Verdict("subset", clause, detail, inside)


def _inverted(left: Question, right: Question, clause: ClauseName, detail: str, *, flips: int) -> Verdict:
    if flips != 1:
        return Verdict("related", clause, detail)
    for state, payout in (*left.void, *right.void):
        if payout != "half":  # both would pay No, or neither what the other does not
            return Verdict("related", "void", _one_sided(state, payout))
    return Verdict("inverted", clause, detail)


def _one_sided(state: str, payout: Payout) -> str:
    return f"{state}: both pay {payout}"
