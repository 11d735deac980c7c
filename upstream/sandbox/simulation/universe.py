"""Simulated events and markets, each labelled as simulated."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import count
from typing import Any

from upstream.sandbox.common.names import PEOPLE, PLACES, TEAMS
from upstream.sandbox.exchange.catalogue import Gamma, listed

LABEL = "Simulated market."
WINDOW_S = 300  # length of an up/down market
HOUR_S = 3600  # length of the longer ones, which only the past has

TAGS = {
    "politics": ("2", "Politics"),
    "elections": ("144", "Elections"),
    "sports": ("1", "Sports"),
    "soccer": ("100350", "Soccer"),
    "economy": ("100328", "Economy"),
    "crypto": ("21", "Crypto"),
    "up-or-down": ("102127", "Up or Down"),
    "weather": ("84", "Weather"),
    "tech": ("1401", "Tech"),
    "culture": ("596", "Culture"),
}
SUBJECTS = [
    "a fusion start-up reaches net gain",
    "a phone without ports is sold",
    "the longest film wins best picture",
    "a probe lands on an asteroid",
]
COINS = {"BTC": ("Bitcoin", 100_000.0), "ETH": ("Ethereum", 4_000.0), "SOL": ("Solana", 200.0), "XRP": ("XRP", 2.5)}


@dataclass
class Plan:
    """A market to be listed, and the parameters of its price."""

    gamma: Gamma
    probability: float
    weight: float = 1.0
    coin: str = ""
    opens_ms: int = 0
    ends_ms: int = 0


@dataclass
class EventPlan:
    """An event to be listed, with its markets."""

    event: Gamma
    markets: list[Plan] = field(default_factory=list)


class Universe:
    """Generator of events; deterministic per seed."""

    def __init__(
        self,
        seed: int,
        *,
        name: str = "universe",
        first_event: int = 800_001,
        first_market: int = 9_000_001,
        first_kind: int = 0,
        candidates: int | None = None,
    ) -> None:
        self._dice = random.Random(f"{seed}/{name}")  # noqa: S311 - repeatable dice are what is wanted
        self._event_ids = count(first_event)
        self._market_ids = count(first_market)
        self._kinds = [self._election, self._match, self._rate_decision, self._rain, self._question]
        self._next_kind = count(first_kind)
        self._candidates = candidates  # of each election; None: several

    def event(self, now_ms: int) -> EventPlan:
        """Return the next long-running event."""
        return self._kinds[next(self._next_kind) % len(self._kinds)](now_ms)

    def window(self, coin: str, opens_ms: int, now_ms: int, *, seconds: int = WINDOW_S) -> EventPlan:
        """Return an up/down market of five minutes or of an hour."""
        name = COINS[coin][0]
        ends_ms = opens_ms + seconds * 1000
        long = "1h" if seconds == HOUR_S else "5m"
        slug = f"{coin.lower()}-updown-{long}-{opens_ms // 1000}"
        opens, ends = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (opens_ms, ends_ms))
        title = f"{name} Up or Down - {opens:%B} {opens.day}, {opens:%H:%M}-{ends:%H:%M} UTC"
        series = {
            "id": str((10_780 if seconds == HOUR_S else 10_680) + list(COINS).index(coin)),
            "ticker": f"{coin.lower()}-up-or-down-{long}",
            "slug": f"{coin.lower()}-up-or-down-{long}",
            "title": f"{name} Up or Down {long}",
            "seriesType": "single",
            "recurrence": long,
        }
        plan = self._event_of(title, slug, ("crypto", "up-or-down"), now_ms, ends_ms, series=series)
        market = self._market(plan.event, title, slug, now_ms, ends_ms, outcomes=("Up", "Down"), probability=0.5)
        market.gamma |= {
            "eventStartTime": iso(opens_ms),
            "automaticallyResolved": True,
            "umaResolutionStatuses": "[]",
            "feesEnabled": True,
            "feeType": "crypto_fees_v2",
            "feeSchedule": {"rate": 0.07, "exponent": 1, "takerOnly": True, "rebateRate": 0.2},
        }
        market.coin, market.opens_ms, market.ends_ms = coin, opens_ms, ends_ms
        plan.markets.append(market)
        return plan

    # --- Kinds of events ---

    def _election(self, now_ms: int) -> EventPlan:
        place = self._dice.choice(PLACES)
        people = self._dice.sample(PEOPLE, self._candidates or self._dice.randint(4, 7))
        return self._group(
            f"Who will win the {place} mayoral election?",
            people,
            "Will {} win the " + place + " mayoral election?",
            ("politics", "elections"),
            now_ms,
        )

    def _rate_decision(self, now_ms: int) -> EventPlan:
        place = self._dice.choice(PLACES)
        moves = ["50+ bps decrease", "25 bps decrease", "No change", "25+ bps increase"]
        return self._group(
            f"{place} central bank decision?",
            moves,
            "{} at the next meeting of the " + place + " central bank?",
            ("economy",),
            now_ms,
        )

    def _match(self, now_ms: int) -> EventPlan:
        home, away = self._dice.sample(TEAMS, 2)
        ends_ms = now_ms + self._dice.randint(1, 14) * 86_400_000
        title = f"{home} vs. {away}"
        plan = self._event_of(title, slug_of(title), ("sports", "soccer"), now_ms, ends_ms)
        winner = self._market(plan.event, title, plan.event["slug"], now_ms, ends_ms, outcomes=(home, away), weight=2.0)
        line = self._dice.choice((1.5, 2.5, 3.5))
        total = self._market(
            plan.event,
            f"{title}: O/U {line}",
            f"{plan.event['slug']}-total-{line}".replace(".", "pt"),
            now_ms,
            ends_ms,
            outcomes=("Over", "Under"),
        )
        winner.gamma |= {"sportsMarketType": "moneyline", "gameStartTime": short(ends_ms)}
        total.gamma |= {"sportsMarketType": "totals", "line": line, "gameStartTime": short(ends_ms)}
        plan.markets += [winner, total]
        return plan

    def _rain(self, now_ms: int) -> EventPlan:
        place = self._dice.choice(PLACES)
        day = datetime.fromtimestamp(now_ms / 1000, UTC) + timedelta(days=self._dice.randint(1, 5))
        title = f"Rain in {place} on {day:%B} {day.day}?"
        return self._single(title, ("weather",), now_ms, int(day.timestamp() * 1000), version="v2")

    def _question(self, now_ms: int) -> EventPlan:
        year = datetime.fromtimestamp(now_ms / 1000, UTC).year + self._dice.randint(1, 3)
        title = f"Will it be true before {year} that {self._dice.choice(SUBJECTS)}?"
        return self._single(title, (self._dice.choice(("tech", "culture")),), now_ms, now_ms + 300 * 86_400_000)

    # --- Parts ---

    def _group(self, title: str, members: list[str], question: str, tags: tuple[str, ...], now_ms: int) -> EventPlan:
        ends_ms = now_ms + self._dice.randint(20, 200) * 86_400_000
        plan = self._event_of(title, slug_of(title), tags, now_ms, ends_ms, neg_risk=True)
        shares = [self._dice.paretovariate(1.2) for _ in members]
        for at, (member, share) in enumerate(zip(members, shares, strict=True)):
            text = question.format(member)
            market = self._market(plan.event, text, slug_of(text), now_ms, ends_ms, probability=share / sum(shares))
            market.gamma |= {
                "groupItemTitle": member,
                "groupItemThreshold": str(at),
                "negRisk": True,
                "negRiskMarketID": plan.event["negRiskMarketID"],
            }
            plan.markets.append(market)
        return plan

    def _single(
        self, title: str, tags: tuple[str, ...], now_ms: int, ends_ms: int, *, version: str = "v1"
    ) -> EventPlan:
        plan = self._event_of(title, slug_of(title), tags, now_ms, ends_ms)
        plan.markets.append(self._market(plan.event, title, plan.event["slug"], now_ms, ends_ms, version=version))
        return plan

    def _event_of(
        self,
        title: str,
        slug: str,
        tags: tuple[str, ...],
        now_ms: int,
        ends_ms: int,
        *,
        neg_risk: bool = False,
        series: Gamma | None = None,
    ) -> EventPlan:
        event_id = next(self._event_ids)
        slug = slug if series else f"{slug}-{event_id}"
        event: Gamma = {
            "id": str(event_id),
            "ticker": slug,
            "slug": slug,
            "title": title,
            "description": f"{LABEL} {title}",
            "startDate": iso(now_ms),
            "creationDate": iso(now_ms),
            "endDate": iso(ends_ms),
            "createdAt": iso(now_ms),
            "updatedAt": iso(now_ms),
            "active": True,
            "closed": False,
            "archived": False,
            "new": False,
            "featured": False,
            "restricted": True,
            "liquidity": 0.0,
            "volume": 0.0,
            "volume24hr": 0.0,
            "openInterest": 0,
            "enableOrderBook": True,
            "negRisk": neg_risk,
            "enableNegRisk": neg_risk,
            "negRiskAugmented": False,
            "commentCount": 0,
            "tags": [{"id": TAGS[slug][0], "label": TAGS[slug][1], "slug": slug} for slug in tags],
        }
        if neg_risk:
            event["negRiskMarketID"] = self._hex(64)
        if series:
            event |= {"series": [series], "seriesSlug": series["slug"]}
        return EventPlan(event)

    def _market(
        self,
        event: Gamma,
        question: str,
        slug: str,
        now_ms: int,
        ends_ms: int,
        *,
        outcomes: tuple[str, str] = ("Yes", "No"),
        probability: float | None = None,
        weight: float = 1.0,
        version: str = "v1",
    ) -> Plan:
        chance = self._dice.uniform(0.08, 0.92) if probability is None else min(max(probability, 0.01), 0.97)
        volume = round(math.exp(self._dice.gauss(9.5, 1.5)), 6) if event.get("series") is None else 0.0
        tick = 0.001 if not 0.04 <= chance <= 0.96 else 0.01
        market_id = next(self._market_ids)
        if event["negRisk"]:
            slug = f"{slug}-{market_id}"
        gamma: Gamma = {
            "id": str(market_id),
            "question": question,
            "conditionId": self._hex(64),
            "slug": slug,
            "description": f"{LABEL} {question}",
            "outcomes": listed(outcomes),
            "outcomePrices": listed((f"{chance:.3f}", f"{1 - chance:.3f}")),
            "clobTokenIds": listed((self._token(), self._token())),
            "questionID": self._hex(64),
            "startDate": iso(now_ms),
            "createdAt": iso(now_ms),
            "updatedAt": iso(now_ms),
            "endDate": iso(ends_ms),
            "startDateIso": iso(now_ms)[:10],
            "endDateIso": iso(ends_ms)[:10],
            "acceptingOrdersTimestamp": iso(now_ms)[:19] + "Z",
            "active": True,
            "closed": False,
            "archived": False,
            "new": False,
            "featured": False,
            "restricted": True,
            "acceptingOrders": True,
            "enableOrderBook": True,
            "orderPriceMinTickSize": tick,
            "orderMinSize": 5,
            "negRisk": False,
            "volume": str(volume),
            "volumeNum": volume,
            "volume24hr": round(volume * 0.05, 6),
            "liquidity": "0",
            "liquidityNum": 0.0,
            "bestBid": 0.0,
            "bestAsk": 1.0,
            "spread": 1.0,
            "lastTradePrice": round(chance, 3),
            "umaResolutionStatuses": "[]",
            "feesEnabled": False,
            "events": [event],
        }
        if version == "v2":
            gamma |= {"version": "v2", "positionIds": [self._token(), self._token()]}
        return Plan(gamma, chance, weight=weight)

    def _hex(self, digits: int) -> str:
        return f"0x{self._dice.getrandbits(4 * digits):0{digits}x}"

    def _token(self) -> str:
        return str(self._dice.getrandbits(256))


@lru_cache(1 << 12)
def iso(ms: int) -> str:
    """Format a time as most fields have it: `2026-01-23T20:56:36.250Z`."""
    at = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z" if ms % 1000 else f"{at:%Y-%m-%dT%H:%M:%SZ}"


def short(ms: int) -> str:
    """Format a time as `closedTime` and `gameStartTime` have it: `2026-01-23 20:56:36+00`."""
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%d %H:%M:%S}+00"


def slug_of(text: str) -> str:
    """Return a title as a slug."""
    return re.sub(r"[\W_]+", "-", text.lower()).strip("-")


def brief(event: Gamma) -> dict[str, Any]:
    """Return an event as a market shows it: without tags."""
    return {key: value for key, value in event.items() if key != "tags"}
