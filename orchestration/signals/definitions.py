"""Signal definitions: from the measures of one market to a finding, or none. Pure; documented in docs/signals.md.

Whale alerts are of single settlements, not of a market's measures: `orchestration/wallets/capture.py`.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from sql.database import MICRO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orchestration.signals.measures import Measures, Parameters

EDITION = 2  # version of the formulas: raised when one changes, and stored with each signal

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
WINDOW_MS = 65 * 60_000  # window in which moves are judged
MISSING_SHARE = 0.05  # of a window may be missing from the feed; with more, no signal
SPREAD_WINDOW_MS, SPREAD_BASELINE_MS = 300_000, HOUR_MS
SPREAD_KNOWN_SHARE, SPREAD_BASELINE_KNOWN_SHARE = 0.8, 0.5  # with both sides
MIN_BOOKS = 3
MIN_MINUTES = 4  # a move and its reversal have a beginning, a turn and an end
MIN_LIFE_SHARE = 0.1  # of a market's life that must have passed before its moves are judged
# A price that has to end at 0 or 1 moves by half the square root of the elapsed share of its life by chance alone (one
# standard deviation, from even odds).
CHANCE = 0.5
LIFE_FACTOR = 1.5

Type = Literal["momentum", "volume_spike", "spread_widening", "book_imbalance", "price_reversal"]


class Finding(msgspec.Struct, frozen=True, gc=False):
    """A value beyond its threshold, and the figures behind it, for the first outcome."""

    type: Type
    market_key: int
    market_id: str
    value: float
    threshold: float
    direction: int | None
    window_s: int
    detail: dict[str, Any]

    @property
    def score(self) -> float:
        """Return how far the value is beyond the threshold."""
        return round(self.value / self.threshold, 6)


def momentum(of: Measures, by: Parameters) -> Finding | None:
    """The price has moved far in 65 minutes: farther than it usually does in an hour, by a factor."""
    if of.price_now is None or of.price_baseline is None or not _old_enough(of, by):
        return None
    if not _whole(of.trades_missed_ms, of.books_missed_ms):
        return None
    move = of.price_now - of.price_baseline
    usual, chance = _usual_move(of), _move_by_chance(of)
    return _finding(
        of,
        "momentum",
        value=abs(move) / MICRO,
        threshold=max(by.momentum_min_move, by.momentum_factor * usual, LIFE_FACTOR * chance),
        direction=move,
        window_s=3900,
        price_now=of.price_now / MICRO,
        price_baseline=of.price_baseline / MICRO,
        price_move=move / MICRO,
        usual_hourly_move=usual,
        move_by_chance=chance,
        hours=of.moves,
        min_move=by.momentum_min_move,
        factor=by.momentum_factor,
    )


def volume_spike(of: Measures, by: Parameters) -> Finding | None:
    """The last hour's USD stand out from the day's hourly mean."""
    if of.spike_ratio is None or not _has_a_past(of, by) or not _whole(of.trades_missed_ms):
        return None
    if of.trades_missed_day_ms > MISSING_SHARE * DAY_MS:
        return None
    move = 0 if of.price_now is None or of.price_baseline is None else of.price_now - of.price_baseline
    return _finding(
        of,
        "volume_spike",
        value=round(of.spike_ratio, 6),
        threshold=by.volume_spike_ratio,
        direction=move,
        window_s=3600,
        vol_24h_usd=of.value_24h / MICRO,
        hourly_mean_usd=round(of.value_24h / 24 / MICRO, 6),
        price_move=move / MICRO,
    )


def spread_widening(of: Measures, by: Parameters) -> Finding | None:
    """The spread of five minutes is wide, and a multiple of what it was in the hour before."""
    spread = _mean(of.spread_ms, of.two_sided_ms, SPREAD_KNOWN_SHARE * SPREAD_WINDOW_MS)
    baseline = _mean(of.baseline_spread_ms, of.baseline_two_sided_ms, SPREAD_BASELINE_KNOWN_SHARE * SPREAD_BASELINE_MS)
    if spread is None or baseline is None or of.books_missed_ms > MISSING_SHARE * HOUR_MS:
        return None
    assert of.two_sided_ms is not None
    return _finding(
        of,
        "spread_widening",
        value=spread,
        threshold=max(by.spread_widening_min_spread, by.spread_widening_factor * baseline),
        direction=0,
        window_s=SPREAD_WINDOW_MS // 1000,
        spread=spread,
        spread_baseline=baseline,
        two_sided_s=of.two_sided_ms / 1000,
        min_spread=by.spread_widening_min_spread,
        factor=by.spread_widening_factor,
    )


def book_imbalance(of: Measures, by: Parameters) -> Finding | None:
    """The newest books lean to one side, and in the hour before they did not."""
    lean = _mean(of.lean_sum, of.books, MIN_BOOKS)
    baseline = _mean(of.baseline_lean_sum, of.baseline_books, MIN_BOOKS)
    if lean is None or baseline is None or of.books_missed_ms > MISSING_SHARE * HOUR_MS:
        return None
    if baseline * lean > 0 and abs(baseline) >= by.book_imbalance_lean / 2:
        return None
    return _finding(
        of,
        "book_imbalance",
        value=abs(lean),
        threshold=by.book_imbalance_lean,
        direction=1 if lean > 0 else -1,
        window_s=600,
        imbalance=lean,
        imbalance_baseline=baseline,
        books=of.books,
        baseline_books=of.baseline_books,
    )


def price_reversal(of: Measures, by: Parameters) -> Finding | None:
    """Within an hour the price went far, and has come back most of the way."""
    if of.first is None or of.last is None or of.high is None or of.low is None or of.minutes is None:
        return None
    if of.minutes < MIN_MINUTES or not _old_enough(of, by) or not _whole(of.trades_missed_ms):
        return None
    turn = of.high if of.high - of.first >= of.first - of.low else of.low
    run, back = turn - of.first, of.last - turn
    usual, chance = _usual_move(of), _move_by_chance(of)
    least = max(by.price_reversal_min_move, by.price_reversal_factor * usual, LIFE_FACTOR * chance)
    if abs(run) / MICRO < least:
        return None
    return _finding(
        of,
        "price_reversal",
        value=round(abs(back) / abs(run), 6),
        threshold=by.price_reversal_share,
        direction=back,
        window_s=3600,
        price_first=of.first / MICRO,
        price_turn=turn / MICRO,
        price_now=of.last / MICRO,
        run=run / MICRO,
        back=back / MICRO,
        least_run=least,
        minutes=of.minutes,
        usual_hourly_move=usual,
        move_by_chance=chance,
        min_move=by.price_reversal_min_move,
        factor=by.price_reversal_factor,
    )


DEFINITIONS: dict[Type, Callable[[Measures, Parameters], Finding | None]] = {
    "momentum": momentum,
    "volume_spike": volume_spike,
    "spread_widening": spread_widening,
    "book_imbalance": book_imbalance,
    "price_reversal": price_reversal,
}


# Up and down are separate signals, each with its own cool-down. A volume spike is one, whatever the direction.
DIRECTED: frozenset[str] = frozenset({"momentum", "book_imbalance", "price_reversal"})


def findings(measured: list[Measures], by: Parameters) -> Iterator[Finding]:
    """Apply every definition to every market."""
    for of in measured:
        for judge in DEFINITIONS.values():
            if (found := judge(of, by)) is not None:
                yield found


def _has_a_past(of: Measures, by: Parameters) -> bool:
    """Return whether the market has traded for long enough to be compared with itself."""
    return of.history_ms is not None and of.history_ms >= by.signal_min_history_h * HOUR_MS


def _old_enough(of: Measures, by: Parameters) -> bool:
    """Return whether it has enough history, or has passed enough of a life that is too short for that."""
    if of.life_ms is None or of.age_ms is None:
        return _has_a_past(of, by)
    return _has_a_past(of, by) or of.age_ms >= MIN_LIFE_SHARE * of.life_ms


def _whole(*missed_ms: int) -> bool:
    """Return whether hardly anything of the window was missed."""
    return all(missed <= MISSING_SHARE * HOUR_MS for missed in missed_ms)


def _move_by_chance(of: Measures) -> float:
    """Return how far chance alone moves the price within the window, if the market's end is known."""
    if of.life_ms is None or of.age_ms is None:
        return 0.0
    return round(CHANCE * sqrt(min(of.age_ms, WINDOW_MS, of.life_ms) / of.life_ms), 6)


def _usual_move(of: Measures) -> float:
    return round(of.moved / of.moves / MICRO, 6) if of.moves else 0.0


def _mean(total: int | None, weight: int | None, least: float) -> float | None:
    if total is None or weight is None or weight < max(least, 1):
        return None
    return round(total / weight / MICRO, 6)


def _finding(
    of: Measures,
    type_: Type,
    *,
    value: float,
    threshold: float,
    direction: int,
    window_s: int,
    **detail: float | None,
) -> Finding | None:
    threshold = round(threshold, 6)
    if value < threshold:
        return None
    detail |= {"trades_1h": of.trades_1h, "vol_1h_usd": of.value_1h / MICRO}
    sign = (direction > 0) - (direction < 0)
    return Finding(type_, of.market_key, of.market_id, value, threshold, sign or None, window_s, detail)
