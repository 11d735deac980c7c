"""Gamma's query filters: which markets and events match, and their order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from upstream.sandbox.exchange.catalogue import Catalogue, Gamma, SandboxMarket, words
from upstream.sandbox.routes.paging import Key, flag, invalid, several

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

Test = Callable[[Gamma], bool]

MARKET_LISTS = {  # query key: field of the market
    "id": "id",
    "slug": "slug",
    "condition_ids": "conditionId",
    "question_ids": "questionID",
    "market_maker_address": "marketMakerAddress",
    "sports_market_types": "sportsMarketType",
    "game_id": "gameId",
}
EVENT_LISTS = {"id": "id", "slug": "slug", "game_id": "gameId"}
FLAGS = {
    "closed": "closed",
    "active": "active",
    "archived": "archived",
    "featured": "featured",
    "live": "live",
    "ended": "ended",
    "cyom": "cyom",
    "rfq_enabled": "rfqEnabled",
}
NUMBERS = {
    "volume_num": "volumeNum",
    "liquidity_num": "liquidityNum",
    "volume": "volume",
    "liquidity": "liquidity",
}
DATES = {"start_date": "startDate", "end_date": "endDate", "start_time": "startTime"}
ORDERS = {
    "volume_24hr": "volume24hr",
    "volume24hr": "volume24hr",
    "volume": "volume",
    "volume_num": "volumeNum",
    "liquidity": "liquidity",
    "liquidity_num": "liquidityNum",
    "start_date": "startDate",
    "end_date": "endDate",
    "created_at": "createdAt",
    "updated_at": "updatedAt",
    "closed_time": "closedTime",
}
MAX_CONDITIONS = 100


class Shown(NamedTuple):
    """A market and its Gamma object, which a quiet market makes anew each time it is asked for it."""

    gamma: Gamma
    market: SandboxMarket


def market_test(catalogue: Catalogue, query: QueryParams) -> Callable[[Shown], bool]:
    """Return a predicate for the filters of /markets."""
    tests = _common(query, MARKET_LISTS)
    if len(several(query, "condition_ids")) > MAX_CONDITIONS:
        raise invalid(f"condition_ids takes at most {MAX_CONDITIONS} ids")
    for name in ("clob_token_ids", "position_ids"):
        if asked := set(several(query, name)):
            field = "clobTokenIds" if name == "clob_token_ids" else "positionIds"
            tests.append(_trading(field, asked))
    if status := query.get("uma_resolution_status"):
        tests.append(lambda gamma: gamma.get("umaResolutionStatus") == status)
    in_tags = _tag_test(query)

    def wanted(shown: Shown) -> bool:
        gamma, market = shown
        return all(test(gamma) for test in tests) and (in_tags is None or in_tags(catalogue.tags_of(market, gamma)))

    return wanted


def quiet_markets(catalogue: Catalogue, query: QueryParams, now_ms: int) -> Sequence[int]:
    """Return the quiet markets that may match, in ascending order: those named, or all, or none by their flags."""
    quiet = catalogue.quiet
    if quiet is None or query.get("uma_resolution_status") or not _may_match(quiet.market(0).gamma, query):
        return ()
    named: list[SandboxMarket | None] | None = None
    for name, find in (
        ("id", catalogue.market),
        ("slug", catalogue.market_of_slug),
        ("condition_ids", catalogue.condition),
        *((name, lambda token: (catalogue.find(token) or (None,))[0]) for name in ("clob_token_ids", "position_ids")),
    ):
        if asked := several(query, name):
            named = list(map(find, asked))
    if named is not None:
        numbers = {quiet.number_of(market.id) for market in named if market is not None}
        return sorted(number for number in numbers if number is not None)
    return quiet.in_order(field_of(query), now_ms)


def quiet_events(catalogue: Catalogue, query: QueryParams, now_ms: int) -> Sequence[int]:
    """Return the quiet events that may match, in ascending order."""
    quiet = catalogue.quiet
    if quiet is None or not _may_match(quiet.event(0), query):
        return ()
    named = several(query, "id")
    for event in map(catalogue.event_of_slug, several(query, "slug")):
        named.append(str(event["id"]) if event is not None else "")
    if named:
        return sorted(number for each in set(named) if (number := quiet.event_number_of(each)) is not None)
    return quiet.events_in_order(field_of(query), now_ms)


def _may_match(example: Gamma, query: QueryParams) -> bool:
    """Return whether the flags asked for are those of an example, which all quiet ones share."""
    return all(test(example) for test in _flag_tests(query))


def event_test(query: QueryParams) -> Test:
    """Return a predicate for the filters of /events."""
    tests = _common(query, EVENT_LISTS)
    in_tags = _tag_test(query)
    if in_tags is not None:
        tests.append(lambda event: in_tags(event.get("tags") or []))
    if refused := set(several(query, "exclude_tag_id")):
        tests.append(lambda event: not refused.intersection(str(tag["id"]) for tag in event.get("tags") or ()))
    if series := set(several(query, "series_id")):
        tests.append(lambda event: bool(series.intersection(str(one["id"]) for one in event.get("series") or ())))
    if words_sought := query.get("title_search"):
        tests.append(lambda event: words_sought.lower() in str(event.get("title", "")).lower())
    return lambda event: all(test(event) for test in tests)


def field_of(query: QueryParams) -> str:
    """Return the field to sort by."""
    name = (query.get("order") or "id").split(",")[0]
    field = ORDERS.get(name, name)
    if not re.fullmatch(r"\w+", field):
        raise invalid("order is invalid")
    return field


def order_of(query: QueryParams) -> tuple[Callable[[Gamma], Key], bool]:
    """Return the sort key, made unique by the id in it, and whether it descends."""
    field, ascending = field_of(query), flag(query, "ascending")
    if field == "id":
        return (lambda gamma: (_id(gamma),)), ascending is False

    def key(gamma: Gamma) -> Key:
        value = gamma.get(field)
        number = _number(value)
        if number is not None:
            return 1, number, "", _id(gamma)
        return (2, 0, str(value), _id(gamma)) if value is not None else (0, 0, "", _id(gamma))

    return key, ascending is not True


def _common(query: QueryParams, lists: dict[str, str]) -> list[Test]:
    tests = [*_list_tests(query, lists), *_flag_tests(query), *_number_tests(query), *_date_tests(query)]
    if versions := set(several(query, "version")):
        tests.append(lambda gamma: gamma.get("version", "v1") in versions)
    return tests


def _list_tests(query: QueryParams, lists: dict[str, str]) -> Iterator[Test]:
    for name, field in lists.items():
        if wanted := set(several(query, name)):
            yield _among(field, wanted)


def _flag_tests(query: QueryParams) -> Iterator[Test]:
    for name, field in FLAGS.items():
        if (asked := flag(query, name)) is not None:
            yield _flagged(field, asked)


def _number_tests(query: QueryParams) -> Iterator[Test]:
    for (name, field), (end, sign) in product(NUMBERS.items(), (("min", 1), ("max", -1))):
        if given := query.get(f"{name}_{end}"):
            bound = _number(given)
            if bound is None:
                raise invalid(f"{name}_{end} is invalid")
            yield _beyond(field, sign, bound)


def _date_tests(query: QueryParams) -> Iterator[Test]:
    for (name, field), end in product(DATES.items(), ("min", "max")):
        if given := query.get(f"{name}_{end}"):
            limit = _time(given)
            if limit is None:
                raise invalid(f"{name}_{end} is invalid")
            yield _date_test(field, limit, latest=end == "max")


# Each predicate is made by a function, as a lambda in a loop would see the loop's last values.


def _among(field: str, wanted: set[str]) -> Test:
    return lambda gamma: str(gamma.get(field)) in wanted


def _trading(field: str, tokens: set[str]) -> Test:
    return lambda gamma: not tokens.isdisjoint(_tokens(gamma, field))


def _flagged(field: str, asked: bool) -> Test:  # noqa: FBT001 - what is asked for is a flag
    return lambda gamma: bool(gamma.get(field)) is asked


def _beyond(field: str, sign: int, bound: float) -> Test:
    return lambda gamma: sign * (_number(gamma.get(field)) or 0) >= sign * bound


def _date_test(field: str, limit: datetime, *, latest: bool) -> Test:
    def test(gamma: Gamma) -> bool:
        at = _time(str(gamma.get(field) or ""))
        return at is not None and (at <= limit if latest else at >= limit)

    return test


def _tag_test(query: QueryParams) -> Callable[[list[Gamma]], bool] | None:
    ids, slugs = set(several(query, "tag_id")), set(several(query, "tag_slug"))
    if not ids and not slugs:
        return None
    return lambda tags: any(str(tag.get("id")) in ids or tag.get("slug") in slugs for tag in tags)


def _tokens(gamma: Gamma, field: str) -> list[str]:
    value = gamma.get(field)
    return words(value) if isinstance(value, str) else [str(token) for token in value or ()]


def _id(gamma: Gamma) -> int | str:
    return int(gamma["id"]) if str(gamma["id"]).isdecimal() else str(gamma["id"])


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _time(value: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
