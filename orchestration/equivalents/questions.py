"""A market's texts as the exchanges give them, and the question that was read from them, clause by clause."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import msgspec

from orchestration.equivalents.quantities import Range

ClauseName = Literal["event", "subject", "threshold", "window", "source", "polarity", "void"]
Payout = Literal["yes", "no", "half", "other"]
Exchange = Literal["polymarket", "kalshi"]


class MarketText(msgspec.Struct, frozen=True):
    """What an exchange says of a market's question. Fields that it does not give are empty or None."""

    exchange: Exchange
    market_id: str
    title: str  # Polymarket's question; Kalshi's title, or its event's
    rules: str  # Polymarket's description; Kalshi's rules_primary
    more_rules: str = ""  # Kalshi's rules_secondary
    label: str = ""  # Kalshi's yes_sub_title; Polymarket's groupItemTitle
    label_names_yes: bool = False  # whether the label says of whom Yes comes true; else it is any short name
    outcomes: tuple[str, ...] = ("Yes", "No")
    source: str = ""  # Polymarket's resolutionSource; names of Kalshi's settlement_sources
    closes_at: str = ""  # as sent
    strike_type: str = ""
    floor_strike: Decimal | None = None
    cap_strike: Decimal | None = None


class Unread(msgspec.Struct, frozen=True):
    """A clause that could not be read with certainty, and the words that stood in the way."""

    clause: ClauseName
    text: str


class Window(msgspec.Struct, frozen=True):
    """When the event counts: from `start` (None: from the listing on) until before `end`; equal, for one moment."""

    start: datetime | None = None
    end: datetime | None = None

    def within(self, other: Window) -> bool:
        """Say whether all of this window lies in the other."""
        if other.start is not None and (self.start is None or self.start < other.start):
            return False
        return other.end is None or (self.end is not None and self.end <= other.end)


class Question(msgspec.Struct, frozen=True):
    """A market's question, read. `event` says what it is about, `happening` what must come true of it for Yes."""

    event: tuple[tuple[str, str], ...]  # kind, place, office, year, …: in any order, sorted by name
    happening: str
    subject: str  # of whom or what it must come true
    rival: str = ""  # the only other subject, in a contest of two
    threshold: Range | None = None
    window: Window = Window()
    source: str = ""  # "record" for what is on public record; else the series of values
    polarity: bool = True
    void: tuple[tuple[str, Payout], ...] = ()  # what is paid in states the text foresees, by state
    at_once: bool = False  # a wider window contains a narrower one's Yes: the event happens once and stays
    unread: tuple[Unread, ...] = ()


class Reading(msgspec.Struct, frozen=True):
    """What was read of a market: the question, as far as it goes, and the names in its texts."""

    question: Question | None
    unread: tuple[Unread, ...]
    names: frozenset[str]


def from_polymarket(market: dict[str, Any]) -> MarketText:
    """Return the text of a market of Gamma or of the CLOB's listing."""
    outcomes = market.get("outcomes") or ["Yes", "No"]
    if isinstance(outcomes, str):
        try:
            outcomes = msgspec.json.decode(outcomes, type=list[str])
        except msgspec.DecodeError:
            outcomes = []
    return MarketText(
        exchange="polymarket",
        market_id=str(market.get("conditionId") or market.get("condition_id") or ""),
        title=str(market.get("question") or ""),
        rules=str(market.get("description") or ""),
        label=str(market.get("groupItemTitle") or ""),
        outcomes=tuple(map(str, outcomes if isinstance(outcomes, list) else [])),
        source=str(market.get("resolutionSource") or ""),
        closes_at=str(market.get("endDate") or market.get("end_date_iso") or ""),
    )


def from_kalshi(market: dict[str, Any], event_title: str = "") -> MarketText:
    """Return the text of a market of Kalshi's listing; older rows have no title, and take their event's."""
    return MarketText(
        exchange="kalshi",
        market_id=str(market.get("ticker") or ""),
        title=str(market.get("title") or event_title),
        rules=str(market.get("rules_primary") or ""),
        more_rules=str(market.get("rules_secondary") or ""),
        label=str(market.get("yes_sub_title") or ""),
        label_names_yes=True,
        closes_at=str(market.get("close_time") or ""),
        strike_type=str(market.get("strike_type") or ""),
        floor_strike=_decimal(market.get("floor_strike")),
        cap_strike=_decimal(market.get("cap_strike")),
    )


def _decimal(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = Decimal(str(value))
    except ArithmeticError:
        return None
    return found if found.is_finite() else None
