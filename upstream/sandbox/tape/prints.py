"""Readers of recorded trades."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from upstream.polymarket.identity import ASSIGNED
from upstream.sandbox.tape import files
from upstream.sandbox.tape.made import CRYPTO, assigned_token, assigned_tx, made, made_event, up_down_group
from upstream.sandbox.tape.recording import Printed, Recording, TapeListing, Won

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upstream.sandbox.tape.files import File, Row

WINDOW_MS = 300_000
AGAIN = "the same as an earlier row"
HASHES = "transaction hashes"
FIRST, SECOND = ("yes", "up", "over"), ("no", "down", "under")
OTHER = {"Yes": "No", "No": "Yes", "Up": "Down", "Down": "Up", "Over": "Under", "Under": "Over"}


def up_down(file: File, rows: Iterable[tuple[int, Row]]) -> Recording:
    """Read trades of up/down markets, with times in ms.

    Only the socket's prints are played: rows decoded from the chain, which have a maker, repeat trades of the same
    minute, each of them from both sides.
    """
    recording = Recording(file.name, "trades", [], [], file=file)
    seen: set[Any] = set()
    for number, row in rows:
        if row["maker_address"]:
            file.leave("decoded from the chain: the trade is there already", number)
            continue
        try:
            printed = Printed(
                files.moment(row["timestamp_ms"]),
                files.token(row["token_id"]),
                files.side(row["side"]),
                *files.traded(row["price"], row["size"]),
                files.transaction(row["trade_id"]),
            )
        except ValueError as error:
            file.leave(str(error), number)
            continue
        _keep(recording, printed, seen, number)
    _sort(recording)
    if recording.tape_events:
        recording.group = up_down_group(recording.first_ms)
    return recording


def candles(file: File, rows: Iterable[tuple[int, Row]]) -> list[Recording]:
    """Read the trades of BTC 5-minute markets, and how each ended."""
    found = []
    for number, whole in rows:
        try:
            found.append(_candle(file, whole))
        except ValueError as error:
            file.leave(str(error), number)
    return found


def _candle(file: File, whole: Row) -> Recording:
    tokens = [files.token(whole["up_token"]), files.token(whole["down_token"])]
    condition_id = files.condition(whole["cid"])
    start_ms = files.moment(whole["cs"])
    won = whole.get("up_won")
    if tokens[0] == tokens[1] or not isinstance(whole["trades"], list):
        raise ValueError("malformed tokens or trades")
    gamma = made(
        file.name,
        slug=f"btc-updown-5m-{start_ms // 1000}",
        question="Bitcoin Up or Down, 5 minutes",
        outcomes=("Up", "Down"),
        tokens=tokens,
        condition_id=condition_id,
    )
    moments = {"eventStartTime": start_ms, "endDate": start_ms + WINDOW_MS}
    recording = Recording(
        file.name, "trades", [], [TapeListing(gamma, file.name, CRYPTO, played=True, moments_ms=moments)], file=file
    )
    file.rows -= 1  # counted by its trades instead
    times: Counter[tuple[object, ...]] = Counter()
    for row in whole["trades"]:
        file.rows += 1
        try:
            at, side, price, size, token, wallet = row
            printed = Printed(
                files.moment(at),
                files.token(token),
                files.side(side),
                *files.traded(price, size),
                "",
                files.wallet(wallet),
            )
        except (ValueError, TypeError) as error:
            file.leave(str(error) if str(error).startswith("malformed ") else "malformed trade", file.rows)
            continue
        # Two equal rows are two trades: this recorder did not read repeated pages.
        identity = _identity(printed)
        printed.tx = assigned_tx(*identity, times[identity])
        times[identity] += 1
        file.assigned[HASHES] += 1
        file.take(printed.token)
        recording.tape_events.append(printed)
    if isinstance(won, int) and won in (0, 1):
        recording.tape_events.append(Won(start_ms + WINDOW_MS, tokens[0 if won else 1]))
    _sort(recording)
    return recording


@dataclass
class _MarketFacts:
    """Market attributes found in trades."""

    title: str = ""
    slug: str = ""
    icon: str = ""
    event: str = ""
    names: dict[str, str] = field(default_factory=dict)  # by token
    places: dict[str, int] = field(default_factory=dict)


def data_api(file: File, rows: Iterable[tuple[int, Row]], places: dict[str, int]) -> Recording:
    """Read Data API rows; a repeated page counts once. `places` maps known tokens to their outcomes."""
    recording = Recording(file.name, "trades", [], [], file=file)
    seen: set[Any] = set()
    markets: dict[str, _MarketFacts] = {}
    for number, row in rows:
        try:
            condition_id = files.condition(row["conditionId"])
            place = _place(row, places)
            printed = Printed(
                files.moment(row["timestamp"]),
                files.token(row["asset"]),
                files.side(row["side"]),
                *files.traded(row["price"], row["size"]),
                files.transaction(row.get("transactionHash")),
                files.wallet(row.get("proxyWallet")),
            )
        except ValueError as error:
            file.leave(str(error), number)
            continue
        if _keep(recording, printed, seen, number):
            facts = markets.setdefault(condition_id, _MarketFacts())
            facts.names[printed.token] = _text(row.get("outcome")) or facts.names.get(printed.token, "")
            if place is not None:
                facts.places[printed.token] = place
            for name, column in (("title", "title"), ("slug", "slug"), ("icon", "icon"), ("event", "eventSlug")):
                if not getattr(facts, name):
                    setattr(facts, name, _text(row.get(column)))
    _sort(recording)
    recording.listings += [_listing(file.name, condition_id, facts) for condition_id, facts in markets.items()]
    return recording


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _place(row: Row, places: dict[str, int]) -> int | None:
    """Return the outcome's index: from the row, or as known for the token or the outcome's name."""
    given = row.get("outcomeIndex")
    if given is not None and given != "":
        if str(given) not in {"0", "1", "0.0", "1.0"}:
            raise ValueError("an outcome that is not one of two")
        return int(float(given))
    known = places.get(str(row["asset"]))
    if known is not None:
        return known
    name = _text(row.get("outcome")).lower()
    return 0 if name in FIRST else 1 if name in SECOND else None


def _listing(source: str, condition_id: str, facts: _MarketFacts) -> TapeListing:
    """Return a listing from what a market's trades say; an untraded outcome gets an assigned token."""
    assigned = []
    tokens: dict[int, str] = {}
    for token, place in facts.places.items():
        tokens.setdefault(place, token)
    for token in sorted(facts.names.keys() - facts.places.keys()):  # in an order independent of the rows'
        free = next((place for place in (0, 1) if place not in tokens), None)
        if free is not None:
            tokens[free] = token
            assigned.append(f"the place of {facts.names[token] or token}")
    assigned += [f"clobTokenIds[{place}]" for place in (0, 1) if place not in tokens]
    names = {place: facts.names.get(token, "") for place, token in tokens.items()}
    both = [names.get(place) or OTHER.get(names.get(1 - place, ""), "") for place in (0, 1)]
    if not facts.slug:
        assigned.append("slug")
    gamma = made(
        source,
        slug=facts.slug or f"recorded-market-{condition_id[2:10]}",
        question=facts.title or f"Recorded market {condition_id[:10]}",
        outcomes=[name or f"Outcome {place}" for place, name in enumerate(both, 1)],
        tokens=[tokens.get(place) or assigned_token(condition_id, place) for place in (0, 1)],
        condition_id=condition_id,
        assigned=assigned,
        tick=0.001,
    )
    if facts.icon:
        gamma |= {"icon": facts.icon, "image": facts.icon}
    if facts.event:
        gamma["events"] = [made_event(facts.event)]
    return TapeListing(gamma, source, played=True)


def _identity(printed: Printed) -> tuple[object, ...]:
    return printed.token, printed.wallet, printed.side, printed.price, printed.size, printed.at_ms


def _keep(recording: Recording, printed: Printed, seen: set[Any], row: int) -> bool:
    """Add a trade unless an earlier row had it; one without a hash gets an assigned one, derived from its content."""
    identity = _identity(printed)
    if (*identity, printed.tx) in seen:
        recording.file.leave(AGAIN, row)
        return False
    seen.add((*identity, printed.tx))
    if not printed.tx:
        printed.tx = assigned_tx(*identity, 0)
        recording.file.assigned[HASHES] += 1
    recording.file.take(printed.token)
    recording.tape_events.append(printed)
    return True


def _sort(recording: Recording) -> None:
    recording.tape_events.sort(key=lambda one: one.at_ms)


def forget_repeated(recordings: Sequence[Recording]) -> None:
    """Drop trades that another file has too, and those without a hash that another file has with one."""
    hashed: set[Any] = set()
    seconds: set[Any] = set()
    for recording in recordings:
        own = [one for one in recording.tape_events if isinstance(one, Printed) and not one.tx.startswith(ASSIGNED)]
        keys = {(*_identity(one), one.tx) for one in own}
        _drop(recording, {id(one) for one in own if (*_identity(one), one.tx) in hashed}, "in another file too")
        hashed |= keys
        seconds |= {(*_identity(one)[:-1], one.at_ms // 1000) for one in own}
    assigned: set[str] = set()
    for recording in recordings:
        own = [one for one in recording.tape_events if isinstance(one, Printed) and one.tx.startswith(ASSIGNED)]
        known = {id(one) for one in own if (*_identity(one)[:-1], one.at_ms // 1000) in seconds}
        _drop(recording, known, "with its hash in another file")
        _drop(recording, {id(one) for one in own if one.tx in assigned} - known, "in another file too")
        assigned |= {one.tx for one in own}


def _drop(recording: Recording, gone: set[int], reason: str) -> None:
    if not gone:
        return
    for one in recording.tape_events:
        if id(one) in gone and isinstance(one, Printed):
            recording.file.of_token[one.token] -= 1
            recording.file.leave(reason)
            if one.tx.startswith(ASSIGNED):
                recording.file.assigned[HASHES] -= 1
    recording.tape_events = [one for one in recording.tape_events if id(one) not in gone]
