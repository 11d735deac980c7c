"""Reader: from a market's texts to its question. A sentence that the grammar does not know is unread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from orchestration.equivalents import grammar, instants, names, quantities, words
from orchestration.equivalents.grammar import Family
from orchestration.equivalents.questions import Payout, Question, Reading, Unread, Window
from orchestration.equivalents.templates import Budget, BudgetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from orchestration.equivalents.questions import ClauseName, MarketText
    from orchestration.equivalents.templates import Template

MAX_QUOTED = 160  # characters of an unread sentence that a verdict quotes
# A title with one of these, in no form that is known, may ask the opposite of its rules.
NEGATIONS = words.listed("not no never without fail fails lose loses miss avoid except neither")
YEARS = frozenset(("year", "term"))  # slots that hold a year, or the sentence is another one
VALUES = frozenset(("price", "temperature", "figure", "fed decision", "upper bound"))
Slots = dict[str, list[str]]


class UnreadError(Exception):
    """A clause that cannot be read with certainty."""

    def __init__(self, clause: ClauseName, text: str) -> None:
        self.unread = Unread(clause, text[:MAX_QUOTED])


class Draft(msgspec.Struct):
    """What the sentences of one market gave, before it is put together."""

    family: Family | None = None
    slots: Slots = msgspec.field(default_factory=dict)
    void: dict[str, Payout] = msgspec.field(default_factory=dict)
    sources: set[str] = msgspec.field(default_factory=set)
    years: set[int] = msgspec.field(default_factory=set)
    unread: list[Unread] = msgspec.field(default_factory=list)


def read(market: MarketText) -> Reading:
    """Read a market's texts. Never raises; what is not read is listed."""
    parts = (market.title, market.rules, market.more_rules, market.label, *market.outcomes)
    if sum(map(len, parts)) > words.MAX_TEXT:
        return Reading(None, (Unread("event", "the texts are too long to be read"),), frozenset())
    texts = [words.plain(part) for part in parts]
    title, rules, more, label = texts[:4]
    found = names.proper(words.tokens(f"{title} {label} {rules}")) | names.topics(words.tokens(f"{title} {label}"))
    budget = Budget()
    try:
        draft = _draft(market, title, [*words.sentences(rules), *words.sentences(more)], budget)
        question = _build(draft, market, words.tokens(label))
    except BudgetError:
        return Reading(None, (Unread("event", "the texts take too many steps to be read"),), found)
    except UnreadError as error:
        return Reading(None, (error.unread,), found)
    return Reading(question, question.unread, found)


def _draft(market: MarketText, title: str, sentences: Sequence[str], budget: Budget) -> Draft:
    draft = Draft()
    if not sentences or len(sentences) > words.MAX_SENTENCES:
        raise UnreadError("event", "no rules" if not sentences else "more sentences than are read")
    asked = words.tokens(title)
    draft.years = {at for word in (*asked, *words.tokens(" ".join(sentences))) if (at := instants.year(word))}
    for sentence in sentences:
        _sentence(sentence, draft, budget)
    if draft.family is None:
        raise draft_error(draft)
    if market.exchange == "polymarket":
        _asked(draft, asked, budget)
    elif NEGATIONS & {word.lower() for word in asked}:
        draft.unread.append(Unread("polarity", title[:MAX_QUOTED]))
    return draft


def draft_error(draft: Draft) -> UnreadError:
    """Return why there is no condition: the first sentence that was not read."""
    first = draft.unread[0] if draft.unread else Unread("event", "no condition for Yes")
    return UnreadError(first.clause, first.text)


def _asked(draft: Draft, asked: Sequence[str], budget: Budget) -> None:
    """Take what only the title says; what both say must agree."""
    lower = [word.lower() for word in asked]
    assert draft.family is not None
    same = [f for f in grammar.FAMILIES if f.kind == draft.family.kind]
    for each in (t for family in same for t in family.asked):
        spans = each.match(lower, budget)
        if spans is not None:
            _merge(draft, {name: list(asked[a:b]) for name, (a, b) in spans.items()})
            return
    if NEGATIONS & set(lower):
        draft.unread.append(Unread("polarity", " ".join(asked)[:MAX_QUOTED]))


def _sentence(sentence: str, draft: Draft, budget: Budget) -> None:
    written = words.tokens(sentence)
    lower = [word.lower() for word in written]

    def first(templates: Iterable[Template]) -> Slots | None:
        return _first(templates, written, lower, budget)

    for family in grammar.FAMILIES:
        slots = first(family.conditions)
        if slots is not None:
            if draft.family is not None and family is not draft.family:
                raise UnreadError("event", sentence)
            draft.family = family
            _merge(draft, slots)
            return
    if not _beside(draft, first, sentence):
        draft.unread.append(Unread(_about(lower), sentence[:MAX_QUOTED]))


def _first(templates: Iterable[Template], written: list[str], lower: list[str], budget: Budget) -> Slots | None:
    """Return the slots of the first template that the sentence is."""
    present = frozenset(lower)
    for each in templates:
        spans = each.match(lower, budget) if each.needed <= present else None
        if spans is not None:
            slots = {name: written[a:b] for name, (a, b) in spans.items()}
            if all(len(slots[name]) == 1 and instants.year(slots[name][0]) for name in YEARS & slots.keys()):
                return slots
    return None


def _about(lower: list[str]) -> ClauseName:
    """Guess which clause a sentence that is not known would have been."""
    present = frozenset(lower)
    if "yes" in present and {"if", "according"} & present:
        return "event"
    return "source" if "source" in present else "void" if "if" in present else "event"


def _beside(draft: Draft, first: Callable[[Iterable[Template]], Slots | None], sentence: str) -> bool:
    """Take a sentence beside the condition: a void rule, a source, a note. Say whether it was one."""
    for state, templates in grammar.VOIDS:
        slots = first(templates)
        if slots is not None:
            _void(draft, state, slots, sentence)
            return True
    if first(grammar.RECORD) is not None:
        draft.sources.add("record")
        return True
    if first(grammar.CALLED_LATE) is not None:
        draft.void["uncalled"] = "other"
        return True
    slots = first(grammar.SERIES)
    if slots is not None:
        draft.sources.add(names.series(slots["source"]))
        return True
    return first(grammar.NOTES) is not None


def _void(draft: Draft, state: str, slots: Slots, sentence: str) -> None:
    name, _, payout = state.rpartition(" ")
    if state in {"late", "unfinished", "nobody"} or "deadline" in slots:
        until = instants.end_of([w.lower() for w in slots.get("deadline", ())])
        if until is None:
            raise UnreadError("void", sentence)
        # A nominee of November's election is known before it.
        if state == "nobody" and until.month >= 11:
            draft.void["nobody"] = "no"
        elif state == "unfinished":
            draft.void[f"unfinished {until:%Y-%m-%dT%H:%M}"] = "half"
        else:
            draft.void[f"late {until:%Y-%m-%dT%H:%M}"] = "no"
    elif payout in {"half", "no"}:
        draft.void[name] = "half" if payout == "half" else "no"
    elif payout == "fair":
        draft.void[name] = "other"
    else:
        draft.void[state] = "no" if state == "not held" else "other"


def _merge(draft: Draft, slots: Mapping[str, list[str]]) -> None:
    """Add slots; one that was filled before must hold the same."""
    for name, value in slots.items():
        if name == "any":
            continue
        before = draft.slots.get(name)
        if before is None:
            draft.slots[name] = value
        elif _form(name, before) != _form(name, value):
            clause: ClauseName = "subject" if name in {"person", "team", "rival"} else "event"
            raise UnreadError(clause, f"{' '.join(before)} / {' '.join(value)}")


def _form(name: str, value: Sequence[str]) -> str:
    if name == "seat":
        return names.seat(value[0]) or " ".join(value)
    if name == "party":
        return names.PARTIES.get(" ".join(value).lower(), " ".join(value))
    if name == "place":
        return names.place(value)
    return names.folded(value).removeprefix("the ")


def _build(draft: Draft, market: MarketText, label: Sequence[str]) -> Question:
    family = draft.family
    assert family is not None
    event: dict[str, str] = {"kind": family.kind}
    slots = draft.slots
    threshold, window, source = None, Window(), "record"
    subject, rival = _subject(family.kind, slots), ""
    at_once = family.kind not in {"price", "temperature", "figure", "fed decision", "upper bound"}
    if family.kind in VALUES:
        threshold = _threshold(slots, market, count=family.kind in {"temperature", "fed decision"})
        source = _source(family.kind, slots)
        window = _value_event(family, slots, event, market)
        at_once = family.happening == "value within a window"
    elif family.kind == "match":
        subject, rival = _match_event(slots, event, market, draft)
    else:
        _office_event(family, slots, event, draft)
    if label and market.label_names_yes and "person" in slots and names.folded(label) != names.folded(slots["person"]):
        raise UnreadError("subject", f"{' '.join(slots['person'])} / {' '.join(label)}")
    if family.kind != "match" and tuple(each.lower() for each in market.outcomes) != ("yes", "no"):
        raise UnreadError("polarity", " / ".join(market.outcomes))
    if draft.sources - {source}:
        draft.unread.append(Unread("source", " / ".join(sorted(draft.sources | {source}))[:MAX_QUOTED]))
    return Question(
        event=tuple(sorted(event.items())),
        happening=family.happening,
        subject=subject,
        rival=rival,
        threshold=threshold,
        window=window,
        source=source,
        void=tuple(sorted(draft.void.items())),
        at_once=at_once,
        unread=tuple(draft.unread),
    )


def _subject(kind: str, slots: Slots) -> str:
    if kind in VALUES:
        return ""
    for name in ("person", "team"):
        if name in slots:
            return names.folded(slots[name]).removeprefix("the ")
    if "party" in slots:
        return _party(slots)
    raise UnreadError("subject", "nobody is named")


def _party(slots: Slots) -> str:
    party = names.PARTIES.get(" ".join(slots["party"]).lower())
    if party is None:
        raise UnreadError("subject", " ".join(slots["party"]))
    return party


def _office_event(family: Family, slots: Slots, event: dict[str, str], draft: Draft) -> None:
    if family.kind.endswith("nomination"):
        event["party"] = _party(slots)
    if "seat" in slots:
        seat = names.seat(slots["seat"][0]) if len(slots["seat"]) == 1 else None
        if seat is None:
            raise UnreadError("event", " ".join(slots["seat"]))
        event["place"] = seat
    if "state" in slots:
        state = names.folded(slots["state"])
        if state not in names.STATES:
            raise UnreadError("event", " ".join(slots["state"]))
        event["place"] = state
    if "place" in slots:
        event["place"] = names.place(slots["place"])
    elif family.kind == "election abroad":
        raise UnreadError("event", "no place is named")
    if "title" in slots:
        title = names.folded(slots["title"])
        event["place"] = names.TITLES.get(title, title)
    event["year"] = _year(slots, draft)


def _year(slots: Slots, draft: Draft) -> str:
    if "term" in slots:
        term = instants.year(slots["term"][0])
        if term is None:
            raise UnreadError("window", " ".join(slots["term"]))
        return str(term - 1)
    if "year" in slots:
        at = instants.year(slots["year"][0])
        if at is None or len(slots["year"]) != 1:
            raise UnreadError("window", " ".join(slots["year"]))
        return str(at)
    if len(draft.years) != 1:
        raise UnreadError("window", "no year, or several")
    return str(next(iter(draft.years)))


def _match_event(slots: Slots, event: dict[str, str], market: MarketText, draft: Draft) -> tuple[str, str]:
    team = names.folded(slots["team"])
    if "first" in slots:
        pair = [names.folded(slots["first"]), names.folded(slots["second"])]
        if team not in pair:
            raise UnreadError("subject", " ".join(slots["team"]))
        rival = pair[1 - pair.index(team)]
    elif "rival" in slots and "one" in slots and "two" in slots:
        rival = names.folded(slots["rival"])
        if [names.folded([o]) for o in market.outcomes] != [names.folded(slots["one"]), names.folded(slots["two"])]:
            raise UnreadError("polarity", " / ".join(market.outcomes))
    else:
        raise UnreadError("subject", "only one side is named")
    league = names.folded(slots.get("league", ["?"]))
    default = instants.year(market.closes_at[:4])
    date = instants.day([w.lower() for w in slots.get("date", ())], default)
    if date is None:
        raise UnreadError("window", " ".join(slots.get("date", ["no date"])))
    event.update(place=" / ".join(sorted((team, rival))), day=date.isoformat())
    if not set(league.split()) & names.NO_TIES and "tie" not in draft.void:
        draft.unread.append(Unread("void", "what a tie pays is not said"))
    return team, rival


def _threshold(slots: Slots, market: MarketText, *, count: bool) -> quantities.Range:
    how = (
        " ".join(slots.get("how", ["between" if "-" in slots["amount"][0] else "?"])).lower()
        if "amount" in slots
        else ""
    )
    if "change" in slots or (not how and "amount" in slots):
        how = "exactly"
    amount = [
        w for w in slots.get("amount", ()) if w.lower() not in {"degrees", "usd", "dollars", "basis", "points", "bps"}
    ]
    found = None
    if len(amount) == 1:
        text = amount[0].lower().removesuffix("bps")
        if how == "between":
            low, _, high = text.removesuffix("°").partition("-")
            a, b = quantities.number(low), quantities.number(high)
            found = None if a is None or b is None or a > b else quantities.Range(low=a, high=b, count=count)
        else:
            value = quantities.number(text)
            if value is not None:
                exact = quantities.Range(low=value, high=value, count=count)
                found = exact if how == "exactly" else quantities.compare(how, value, count=count)
    if found is None:
        raise UnreadError("threshold", " ".join(slots.get("amount", ["no threshold"])))
    _agrees(found, market)
    return found


def _agrees(found: quantities.Range, market: MarketText) -> None:
    """Compare with the strike that Kalshi's API states beside the text."""
    stated = {
        "greater": quantities.Range(low=market.floor_strike, low_strict=True, count=found.count),
        "greater_or_equal": quantities.Range(low=market.floor_strike, count=found.count),
        "less": quantities.Range(high=market.cap_strike, high_strict=True, count=found.count),
        "less_or_equal": quantities.Range(high=market.cap_strike, count=found.count),
        "between": quantities.Range(low=market.floor_strike, high=market.cap_strike, count=found.count),
    }.get(market.strike_type)
    if stated is not None and stated.normal() != found.normal():
        raise UnreadError("threshold", f"{market.strike_type} {market.floor_strike} {market.cap_strike}")


def _source(kind: str, slots: Slots) -> str:
    if kind in {"fed decision", "upper bound"}:
        return "record"
    if "source" not in slots:
        raise UnreadError("source", "no source is named")
    return names.series(slots["source"])


def _value_event(family: Family, slots: Slots, event: dict[str, str], market: MarketText) -> Window:
    lower = {name: [w.lower() for w in value] for name, value in slots.items()}
    event["place"] = _valued(slots)
    for name, slot in (("direction", "change"), ("side", "side"), ("period", "period")):
        if slot in slots:
            event[name] = names.folded(slots[slot])
    if "period" in slots:
        return Window()
    if "from" in slots:
        start, end = instants.moment(lower["from"]), instants.end_of(lower["until"])
        if start is None or end is None or start >= end:
            raise UnreadError("window", " ".join(slots["from"] + slots["until"]))
        return Window(start, end)
    at = _moment(family, lower, market)
    if at is None:
        raise UnreadError("window", " ".join(slots.get("moment") or slots.get("date") or ["no moment"]))
    return Window(at, at)


def _valued(slots: Slots) -> str:
    """Return what is valued: a pair, a place, a figure, an index; nothing, for the Federal Reserve's one target."""
    if "pair" in slots:
        return names.folded(slots["pair"]).replace("/", "")
    if "place" in slots:
        return names.place(slots["place"])
    if "figure" in slots:
        return names.folded(slots["figure"])
    return names.series(slots["source"]) if "source" in slots else ""


def _moment(family: Family, slots: Slots, market: MarketText) -> datetime | None:
    default = instants.year(market.closes_at[:4])
    if "moment" in slots:
        return instants.moment(slots["moment"])
    date = slots.get("date", [])
    if family.kind != "price":
        at = instants.day(date)
        return None if at is None else instants.start_of_day(at)
    if "clock" in slots:
        return instants.moment([*date, *slots["clock"], "pm" if slots["clock"] == ["12:00"] else "", "et"], default)
    return instants.moment(date, default)
