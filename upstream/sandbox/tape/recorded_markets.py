"""Recorded catalogues: Gamma objects as they are; others, such as the order book API's, converted to Gamma's format."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from upstream.sandbox.exchange.catalogue import Gamma, listed, token_ids, words
from upstream.sandbox.simulation.universe import iso
from upstream.sandbox.tape import files
from upstream.sandbox.tape.made import CRYPTO, assigned_condition, made, tag
from upstream.sandbox.tape.recording import TapeListing
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from upstream.sandbox.tape.files import File, Row

WINDOW_MS = 300_000
ANSWERS = {"Yes": 0, "No": 1, "Yes (Normalized)": 1}
OLDER = "an older state of a market"
KNOWN = "a market that is known already"
TEXTS = ("question", "slug", "conditionId", "version", "description", "icon", "image", "closedTime")
FLAGS = ("closed", "active", "archived", "acceptingOrders", "enableOrderBook", "negRisk")
MAX_ID_DIGITS = 18


# --- From Gamma ---


def gamma_markets(file: File, rows: Iterable[tuple[int, Row]]) -> tuple[list[TapeListing], list[Gamma]]:
    """Read Gamma objects: markets, or events with markets in them; events are returned too."""
    listings: list[TapeListing] = []
    events: list[Gamma] = []
    for number, given in rows:
        row = given["raw"] if isinstance(given.get("raw"), dict) else given
        inside = row.get("markets")
        if inside is not None or "conditionId" not in row:
            fault = event_fault(row)
            if fault or (inside is not None and not isinstance(inside, list)):
                file.leave(fault or "malformed markets", number)
                continue
            events.append({key: value for key, value in row.items() if key != "markets"})
            shown = {key: value for key, value in row.items() if key not in ("markets", "tags")}
            file.rows -= bool(inside)  # an event is counted by its markets instead
            file.used += not inside
            markets = [{**one, "events": [shown]} if isinstance(one, dict) else one for one in inside or ()]
            file.rows += len(markets)
        else:
            markets = [row]
        for market in markets:
            fault = market_fault(market) if isinstance(market, dict) else "malformed: not an object"
            if fault:
                file.leave(fault, number)
            else:
                listings.append(TapeListing(market, file.name, file=file, row=number))
    return listings, events


def market_fault(gamma: Gamma) -> str:
    """Return why a Gamma object cannot be listed; empty if it can."""
    for name in TEXTS:
        if not isinstance(gamma.get(name), str | None):
            return f"malformed {name}"
    for name in FLAGS:
        if not isinstance(gamma.get(name), bool | None):
            return f"malformed {name}"
    try:
        _identifier(gamma.get("id"))
        if gamma.get("conditionId"):
            files.condition(gamma["conditionId"])
        _outcomes(gamma)
        _sizes(gamma)
        _updated(gamma)
    except ValueError as error:
        return str(error)
    events = gamma.get("events")
    if not isinstance(events, list | None):
        return "malformed events"
    return next((fault for event in events or () if (fault := event_fault(event))), "")


def _outcomes(gamma: Gamma) -> None:
    """Check tokens, outcomes and prices of a market; ValueError if they do not match."""
    _strings(gamma.get("clobTokenIds"))
    if not isinstance(gamma.get("positionIds"), list | None):
        raise ValueError("malformed tokens")  # noqa: TRY004 - like any other fault of a row
    tokens = [files.token(one) for one in token_ids(gamma)]
    if len(set(tokens)) < len(tokens):
        raise ValueError("malformed tokens")
    outcomes = _strings(gamma.get("outcomes"))
    prices = [files.price(one) for one in _strings(gamma.get("outcomePrices"))]
    if tokens and len(outcomes) != len(tokens):
        raise ValueError("not as many outcomes as tokens")
    if tokens and prices and len(prices) != len(tokens):
        raise ValueError("not as many prices as tokens")


def _sizes(gamma: Gamma) -> None:
    if gamma.get("orderPriceMinTickSize") and not 0 < files.price(gamma["orderPriceMinTickSize"]) < ONE:
        raise ValueError("malformed tick size")
    if gamma.get("orderMinSize"):
        files.size(gamma["orderMinSize"])


def event_fault(event: Any) -> str:
    """Return why a Gamma object is not an event; empty if it is."""
    if not isinstance(event, dict):
        return "malformed events"
    try:
        _identifier(event.get("id"))
        for name in ("tags", "series"):
            inside = event.get(name) or ()
            if not isinstance(inside, list | tuple) or not all(isinstance(one, dict) for one in inside):
                return f"malformed {name}"
            for one in inside:
                _identifier(one.get("id"))
    except ValueError as error:
        return str(error)
    texts = [event.get(name) for name in ("slug", "title", "ticker", "description")]
    texts += [one.get(name) for one in event.get("tags") or () for name in ("slug", "label")]
    return "" if all(isinstance(text, str | None) for text in texts) else "malformed title"


def _identifier(value: Any) -> None:
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal() and len(text) <= MAX_ID_DIGITS):
        raise ValueError("malformed id")


def _strings(value: Any) -> list[str]:
    if value is None or value == "":
        return []
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str | int | float) for one in found):
        raise ValueError("malformed list")
    return words(value)


def newest(listings: Iterable[TapeListing]) -> Iterator[TapeListing]:
    """Yield the most recently updated object of each market; those without a condition are matched by id."""
    best: dict[str, TapeListing] = {}
    for listing in listings:
        key = listing.gamma.get("conditionId") or str(listing.gamma["id"])
        held = best.get(key)
        later = held is None or _updated(listing.gamma) > _updated(held.gamma)
        older = held if later else listing
        if later:
            best[key] = listing
        if older is not None:
            leave(older, OLDER)
    return iter(best.values())


def leave(listing: TapeListing, reason: str) -> None:
    """Count a row that describes a market and is not used."""
    if listing.file is not None:
        listing.file.leave(reason, listing.row)


def _updated(gamma: Gamma) -> datetime:
    try:
        at = datetime.fromisoformat(gamma.get("updatedAt") or "1970-01-01T00:00:00Z")
    except (ValueError, TypeError):
        raise ValueError("malformed updatedAt") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


# --- From the order book API ---


def clob_markets(file: File, rows: Iterable[tuple[int, Row]]) -> list[TapeListing]:
    """Read a page of the order book API's markets."""
    found = []
    for number, row in rows:
        try:
            found.append(_from_clob(file, number, row))
        except ValueError as error:
            file.leave(str(error), number)
    return found


def simplified_markets(file: File, rows: Iterable[tuple[int, Row]], known: dict[str, TapeListing]) -> None:
    """Read the order book API's simplified markets, which have only condition, tokens and prices.

    They do not describe a market, so those that no other file describes are left out. A known market gets its tokens if
    it has none, and its prices if it has none from Gamma.
    """
    for number, row in rows:
        try:
            condition_id, tokens, outcomes, prices = _pair(row)
        except ValueError as error:
            file.leave(str(error), number)
            continue
        listing = known.get(condition_id)
        if listing is None:
            file.leave("of a market that no file describes", number)
            continue
        gamma = dict(listing.gamma)
        held, names = token_ids(gamma), _strings(gamma.get("outcomes"))
        rows_by_outcome = sorted(
            zip(outcomes, tokens, prices, strict=True), key=lambda one: names.index(one[0]) if one[0] in names else 0
        )
        if (held and set(held) != set(tokens)) or (names and set(names) != set(outcomes)):
            file.leave("with other tokens or outcomes than the market is described with", number)
            continue
        if held:
            rows_by_outcome.sort(key=lambda one: held.index(one[1]))
        else:
            gamma |= {
                "clobTokenIds": listed(one[1] for one in rows_by_outcome),
                "outcomes": listed(one[0] for one in rows_by_outcome),
            }
        if "sandboxMadeFrom" in gamma or not gamma.get("outcomePrices"):
            gamma["outcomePrices"] = listed(one[2] for one in rows_by_outcome)
        listing.gamma = gamma
        file.used += 1


def _pair(row: Row) -> tuple[str, list[str], list[str], list[str]]:
    """Return condition, tokens, outcomes and prices; prices of a resolved market are 1 and 0."""
    if not row.get("condition_id"):
        raise ValueError("a market without condition or tokens")
    tokens = row.get("tokens")
    if not isinstance(tokens, list) or len(tokens) != 2 or not all(isinstance(one, dict) for one in tokens):
        raise ValueError("a market without condition or tokens")
    if not all(one.get("token_id") for one in tokens):
        raise ValueError("a market without condition or tokens")
    ids = [files.token(one["token_id"]) for one in tokens]
    outcomes = [one.get("outcome") for one in tokens]
    if ids[0] == ids[1] or not all(isinstance(name, str) for name in outcomes):
        raise ValueError("malformed tokens")
    won = [one.get("winner") is True for one in tokens]
    if row.get("closed") and any(won):
        prices = [str(int(one)) for one in won]
    else:
        for one in tokens:
            files.price(one.get("price"))
        prices = [str(one["price"]) for one in tokens]
    return files.condition(row["condition_id"]), ids, [str(name) for name in outcomes], prices


def _from_clob(file: File, number: int, row: Gamma) -> TapeListing:
    """Return a market of the order book API as a Gamma object."""
    condition_id, tokens, outcomes, prices = _pair(row)
    tick = row.get("minimum_tick_size") or 0.01
    if not 0 < files.price(tick) < ONE:
        raise ValueError("malformed tick size")
    texts = {name: row.get(name) or "" for name in ("market_slug", "question", "description", "icon", "image")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("malformed name")
    gamma = made(
        file.name,
        slug=texts["market_slug"],
        question=texts["question"],
        outcomes=outcomes,
        tokens=tokens,
        condition_id=condition_id,
        tick=tick,
        description=texts["description"],
    )
    won = [one.get("winner") is True for one in row["tokens"]]
    gamma |= {"outcomePrices": listed(prices), "icon": texts["icon"], "image": texts["image"]}
    fields = {
        "questionID": "question_id",
        "endDate": "end_date_iso",
        "active": "active",
        "closed": "closed",
        "archived": "archived",
        "acceptingOrders": "accepting_orders",
        "enableOrderBook": "enable_order_book",
        "orderMinSize": "minimum_order_size",
        "negRisk": "neg_risk",
        "negRiskMarketID": "neg_risk_market_id",
        "negRiskRequestID": "neg_risk_request_id",
        "secondsDelay": "seconds_delay",
    }
    gamma |= {name: row[field] for name, field in fields.items() if field in row}
    if accepting := row.get("accepting_order_timestamp"):
        gamma["acceptingOrdersTimestamp"] = accepting
    if started := row.get("game_start_time"):
        gamma["gameStartTime"] = str(started).replace("T", " ").replace("Z", "+00")
    if any(won):
        gamma["umaResolutionStatus"] = "resolved"
    if fault := market_fault(gamma):
        raise ValueError(fault)
    labels = [label for label in row.get("tags") or () if isinstance(label, str) and label != "All"]
    tags = [tag("-".join(label.lower().split()), label) for label in labels]
    return TapeListing(gamma, file.name, tags, file=file, row=number)


# --- From collectors ---


def up_down_markets(file: File, rows: Iterable[tuple[int, Row]]) -> Iterator[TapeListing]:
    """Read up/down markets found by a collector."""
    for number, row in rows:
        try:
            gamma = made(
                file.name,
                slug=row["market_slug"],
                question=row["question"],
                outcomes=("Up", "Down"),
                tokens=(files.token(row["token_id_up"]), files.token(row["token_id_down"])),
                condition_id=files.condition(row["condition_id"]),
            )
            ends = {"endDate": files.moment(row["end_ts_ms"])} if row.get("end_ts_ms") else {}
            if row.get("end_date"):
                gamma["endDate"] = row["end_date"]
            if fault := market_fault(gamma):
                raise ValueError(fault)  # noqa: TRY301 - like any other fault of a row
        except ValueError as error:
            file.leave(str(error), number)
        else:
            yield TapeListing(gamma, file.name, CRYPTO, moments_ms=ends, file=file, row=number)


def five_minute_markets(file: File, rows: Iterable[tuple[int, Row]]) -> Iterator[TapeListing]:
    """Read BTC 5-minute markets known by slug and tokens."""
    for number, row in rows:
        try:
            starts = files.moment(row["timestamp"])
            gamma = made(
                file.name,
                slug=row["slug"],
                question=f"Bitcoin Up or Down, 5 minutes from {iso(starts)}",
                outcomes=("Up", "Down"),
                tokens=(files.token(row["up_token_id"]), files.token(row["down_token_id"])),
                condition_id=assigned_condition(row["slug"]),
                assigned=["conditionId"],
            )
            gamma |= {"eventStartTime": iso(starts), "endDate": iso(starts + WINDOW_MS)}
            if fault := market_fault(gamma):
                raise ValueError(fault)  # noqa: TRY301 - like any other fault of a row
        except ValueError as error:
            file.leave(str(error), number)
        else:
            yield TapeListing(gamma, file.name, CRYPTO, file=file, row=number)


def capture_markets(file: File, rows: Iterable[tuple[int, Row]]) -> tuple[list[TapeListing], list[Gamma]]:
    """Read the markets and events of a capture reduced to best prices."""
    events: dict[str, Gamma] = {}
    tokens: dict[str, dict[int, str]] = {}
    questions: dict[str, Row] = {}
    counts: dict[str, int] = {}
    for number, row in rows:
        try:
            token = files.token(row["asset_id"])
            _identifier(row["market_id"])
            _identifier(row["event_id"])
            if not isinstance(row["question"], str) or not isinstance(row["event_title"], str):
                raise ValueError("malformed question")  # noqa: TRY004, TRY301 - like any other fault of a row
            if row["answer"] not in ANSWERS:
                raise ValueError("malformed answer")  # noqa: TRY301 - like any other fault of a row
        except ValueError as error:
            file.leave(str(error), number)
            continue
        market_id, event_id = str(row["market_id"]), str(row["event_id"])
        events[event_id] = {
            "id": event_id,
            "title": row["event_title"],
            "slug": f"recorded-event-{event_id}",
            "closed": False,
        }
        tokens.setdefault(market_id, {})[ANSWERS[row["answer"]]] = token
        questions[market_id] = row
        counts[market_id] = counts.get(market_id, 0) + 1
    listings = []
    for market_id, pair in tokens.items():
        if len(set(pair.values())) != 2:
            file.leave("of a market with one token", count=counts[market_id])
            continue
        slug = f"recorded-market-{market_id}"
        gamma = made(
            file.name,
            slug=slug,
            question=questions[market_id]["question"],
            outcomes=("Yes", "No"),
            tokens=(pair[0], pair[1]),
            condition_id=assigned_condition(slug, market_id),
            gamma_id=market_id,
            assigned=["conditionId", "slug"],
        )
        gamma["events"] = [events[str(questions[market_id]["event_id"])]]
        listings.append(TapeListing(gamma, file.name, [tag("nba", "NBA")]))
        file.leave(
            "of its rows only the market is used: they have no levels, its prints no size", count=counts[market_id] - 1
        )
        file.used += 1
    return listings, list(events.values())
