"""Simulated series, events and markets of Kalshi, each labelled as simulated; the same ones for a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

from upstream.sandbox.common.names import PEOPLE, PLACES, TEAMS
from upstream.sandbox.common.walks import Group, PriceWalk
from upstream.sandbox.kalshi.exchange.grid import GRIDS
from upstream.sandbox.kalshi.exchange.listings import KalshiEvent, KalshiMarket, KalshiSeries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upstream.sandbox.kalshi.exchange.listings import Json

COINS = ("BTC", "ETH", "SOL", "XRP")
COMBO_SHARD, CRYPTO_SHARD, SPORTS_SHARD = 1, 2, 3


@dataclass(frozen=True)
class Life:
    """When a market is made, opens and closes, and for how long its result may be disputed."""

    created_ms: int
    open_ms: int
    close_ms: int
    timer_s: int = 300
    can_close_early: bool = False


@dataclass
class Contract:
    """One market of an event to be made: what is added to tickers and texts, its chance and its strike."""

    suffix: str
    yes: str
    chance: float
    extra: Json


class KalshiUniverse:
    """Generator of events; deterministic per seed."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(f"{seed}/kalshi")  # noqa: S311 - repeatable dice are what is wanted
        self._numbers = count(1)
        self._series: dict[str, KalshiSeries] = {}
        self._kinds = (self._rates, self._heat, self._game, self._window, self._mayor, self._score)

    def event(self, life: Life, *, kind: int | None = None) -> KalshiEvent:
        """Return another event with its markets."""
        number = next(self._numbers)
        return self._kinds[(number if kind is None else kind) % len(self._kinds)](number, life)

    def combo(self, legs: Sequence[tuple[KalshiMarket, str]], life: Life) -> KalshiEvent:
        """Return an event with one combo, of markets and the side of each."""
        number = next(self._numbers)
        series = self._named("KXMVESIM", "Simulated combo", "Sports", [], COMBO_SHARD)
        event = self._event(series, f"S{number:05X}", "Combo", "", life, exclusive=False, strike=False)
        selected = [{"event_ticker": leg.event.ticker, "market_ticker": leg.ticker, "side": side} for leg, side in legs]
        title = ",".join(f"{side} {leg.yes_sub_title}" for leg, side in legs)
        extra = {"mve_collection_ticker": "KXMVESIM-R", "mve_selected_legs": selected, "is_provisional": True}
        self._add(event, life, [Contract(f"{number:05X}", title, 0.25, extra)], title, "center_deci_edge_centi_cent")
        return event

    # --- Kinds of events ---

    def _rates(self, number: int, life: Life) -> KalshiEvent:
        place = self._dice.choice(PLACES)
        series = self._named(f"KXSIMRATE{_code(place)}", f"{place} rate", "Economics", ["Rates"], 0)
        event = self._event(series, _dated(number, life), f"{place} rate decision", "", life, exclusive=False)
        strikes = [3.75 + step / 4 for step in range(5)]
        contracts = [
            Contract(
                f"T{strike}",
                f"Above {strike}%",
                0.9 - 0.19 * at,
                {"strike_type": "greater", "floor_strike": strike},
            )
            for at, strike in enumerate(strikes)
        ]
        self._add(event, life, contracts, "Will the rate of " + place + " be {}?", "linear_cent")
        return event

    def _heat(self, number: int, life: Life) -> KalshiEvent:
        place = self._dice.choice(PLACES)
        series = self._named(
            f"KXSIMHIGH{_code(place)}", f"Highest temperature in {place}", "Climate and Weather", ["Temperature"], 0
        )
        event = self._event(series, _dated(number, life), f"Highest temperature in {place}", "", life, exclusive=True)
        low = self._dice.randint(30, 80)
        contracts = [
            Contract(
                f"B{low + 2 * at}.5",
                f"{low + 2 * at}° to {low + 2 * at + 1}°",
                0.2,
                {"strike_type": "between", "floor_strike": low + 2 * at, "cap_strike": low + 2 * at + 1},
            )
            for at in range(5)
        ]
        self._add(event, life, contracts, "Will the high in " + place + " be {}?", "tapered_deci_cent")
        return event

    def _game(self, number: int, life: Life) -> KalshiEvent:
        home, away = self._dice.sample(TEAMS, 2)
        series = self._named("KXSIMGAME", "Simulated game", "Sports", ["Basketball"], SPORTS_SHARD)
        title = f"{away} at {home} Winner?"
        event = self._event(series, _dated(number, life), f"{away} at {home}", title, life, exclusive=True)
        contracts = [
            Contract(_code(team), team, 0.5, {"strike_type": "structured", "custom_strike": {"basketball_team": team}})
            for team in (home, away)
        ]
        self._add(event, life, contracts, title, "linear_cent")
        return event

    def _window(self, number: int, life: Life) -> KalshiEvent:
        coin = COINS[number // len(self._kinds) % len(COINS)]
        series = self._named(f"KXSIM{coin}15M", f"{coin} up or down", "Crypto", [coin], CRYPTO_SHARD)
        event = self._event(series, _dated(number, life), f"{coin} price up or down", "", life, exclusive=False)
        strike = round(self._dice.uniform(10, 100_000), 2)
        extra = {"strike_type": "greater_or_equal", "floor_strike": strike}
        self._add(event, life, [Contract("15", f"${strike:,} or above", 0.5, extra)], f"{coin} {{}}?", "deci_cent")
        return event

    def _mayor(self, number: int, life: Life) -> KalshiEvent:
        place = self._dice.choice(PLACES)
        series = self._named(f"KXSIMMAYOR{_code(place)}", f"Mayor of {place}", "Elections", [], 0)
        event = self._event(series, f"{number:05d}", f"Who becomes mayor of {place}?", "", life, exclusive=True)
        people = self._dice.sample(PEOPLE, 4)
        contracts = [
            Contract(
                "".join(name[:3].upper() for name in person.split()),
                person,
                0.25,
                {"strike_type": "custom", "custom_strike": {"Person": person}},
            )
            for person in people
        ]
        self._add(event, life, contracts, "Will {} become mayor of " + place + "?", "tapered_deci_cent")
        return event

    def _score(self, number: int, life: Life) -> KalshiEvent:
        team = self._dice.choice(TEAMS)
        series = self._named("KXSIMSCORE", "Simulated score", "Sports", ["Basketball"], SPORTS_SHARD)
        event = self._event(series, _dated(number, life), f"Points of {team}", "", life, exclusive=False)
        extra = {"strike_type": "functional", "functional_strike": "points / 200"}
        contract = Contract("PTS", f"Points of {team} by 200", 0.5, extra)
        self._add(event, life, [contract], "{}", "linear_cent", kind="scalar")
        return event

    # --- Parts ---

    def _named(self, ticker: str, title: str, category: str, tags: list[str], shard: int) -> KalshiSeries:
        known = self._series.get(ticker)
        if known is None:
            known = self._series[ticker] = KalshiSeries(ticker, title, category, tags, shard)
        return known

    def _event(
        self,
        series: KalshiSeries,
        suffix: str,
        title: str,
        sub_title: str,
        life: Life,
        *,
        exclusive: bool,
        strike: bool = True,
    ) -> KalshiEvent:
        series.updated_ms = max(series.updated_ms, life.created_ms)
        return KalshiEvent(
            f"{series.ticker}-{suffix}",
            series,
            title,
            sub_title or f"{datetime.fromtimestamp(life.close_ms / 1000, UTC):%b %d at %H:%M}",
            exclusive,
            life.created_ms,
            strike_ms=life.close_ms if strike else None,
        )

    def _add(
        self,
        event: KalshiEvent,
        life: Life,
        contracts: list[Contract],
        title: str,
        structure: str,
        *,
        kind: str = "binary",
    ) -> None:
        """Put markets into an event; they are not listed before the exchange adds them."""
        group = Group() if event.exclusive else None
        for contract in contracts:
            market = KalshiMarket(
                f"{event.ticker}-{contract.suffix}",
                event,
                title.format(contract.yes),
                contract.yes,
                life.created_ms,
                life.open_ms,
                life.close_ms,
                life.close_ms,
                grid=GRIDS[structure],
                kind=kind,
                timer_s=life.timer_s,
                can_close_early=life.can_close_early,
                extra=contract.extra,
            )
            market.walk = PriceWalk(contract.chance, group, sigma=self._dice.uniform(0.008, 0.03), ms=life.open_ms)
            event.markets.append(market)


def _code(name: str) -> str:
    return "".join(letter for letter in name.upper() if letter.isalpha())[:6]


def _dated(number: int, life: Life) -> str:
    at = datetime.fromtimestamp(life.close_ms / 1000, UTC)
    return f"{at:%y%b%d}".upper() + f"{number:05d}"
