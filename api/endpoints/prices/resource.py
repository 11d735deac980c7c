"""Resources of prices and candles."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from api.data import complements
from api.data.lookup import normalized_id
from api.endpoints.base.resource import ChartResource, OutcomeResource, ReadResource
from api.errors import Problem
from api.schemas.requests import EARLIEST, MAX_BUCKETS
from sql.queries import candles, udf

if TYPE_CHECKING:
    from collections.abc import Callable

    import falcon

    from api.endpoints.prices.requests import CandleParameters, PriceHistoryParameters, PriceParameters
    from api.server.middleware import ApiResponse

MAX_IDS = 100
UNKNOWN, MAX_HEADER_LENGTH = "X-Unknown-Ids", 2000
UNKNOWN_IDS = {UNKNOWN: "Ids that match no market, percent-encoded, comma-separated; if too many, the last is `...`"}
STEPS = {"1s": 1, "1m": 60, "5m": 300, "1h": 3600}
EXCERPTS = {"1s": candles.of_1s, "1m": candles.of_1m, "5m": candles.of_5m, "1h": candles.of_1h}
CLOSE_BEFORE_S = 3600  # `filled` looks for the trade before a range this far back, then at candles
BARS = {"1": (udf.minutes, candles.last_bars_1m), "60": (udf.hours, candles.last_bars_1h)}


def several(text: str, most: int, name: str = "ids") -> list[str]:
    """Return the distinct names of a comma-separated list; raise a Problem if there are too many or none."""
    ids = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not 0 < len(ids) <= most:
        raise Problem(
            "invalid_parameter",
            f"`{name}` names {len(ids)} markets",
            hint=f"Allowed: 1 to {most}, separated by commas",
            errors=[{"name": name, "detail": f"{len(ids)} markets", "allowed": f"1 to {most}"}],
        )
    return ids


def cost_of_several(given: PriceParameters) -> int:
    """Return one credit per 25 ids, rounded up."""
    return -(-len(several(given.ids, MAX_IDS)) // 25)


class Prices(ReadResource):
    """Live prices of several markets; the X-Unknown-Ids header lists ids that match no market."""

    def answer(self, given: str, **path: str) -> bytes:
        """Return the prices by id."""
        return given.encode()

    def respond(
        self, req: falcon.Request, resp: ApiResponse, body: bytes, tag: str, lag_s: float | None = None
    ) -> None:
        """Send the body with the X-Unknown-Ids header; the cache keeps those ids after the tag."""
        tag, _, unknown = tag.partition("@")
        if unknown:
            resp.set_header(UNKNOWN, unknown)
        super().respond(req, resp, body, tag, lag_s)

    def _with_etag(self, given: PriceParameters, path: dict[str, str]) -> tuple[bytes, str]:  # type: ignore[override]
        ids = several(given.ids, MAX_IDS)
        text, unknown = self.read(ids=ids, names=[normalized_id(each) for each in ids])
        body, tag = super()._with_etag(text, path)
        return body, f"{tag}@{header_value(unknown)}" if unknown else tag


def header_value(unknown: list[str]) -> str:
    """Return ids as a header value: percent-encoded, comma-separated, bounded to what proxies accept."""
    names, length = [], 0
    for each in unknown:
        names.append(quote(each, safe=""))
        length += len(names[-1]) + 1
        if length > MAX_HEADER_LENGTH:
            names[-1] = "..."
            break
    return ",".join(names)


class PriceHistory(OutcomeResource):
    """Candles of an outcome."""

    def answer(self, given: PriceHistoryParameters, **path: str) -> bytes:
        """Return the newest candles of the range, oldest first."""
        market, outcome = self.outcome(given, path)
        outcome, is_other = market.traded(outcome)
        step = STEPS[given.resolution]
        now = datetime.now(UTC)
        span = timedelta(seconds=step * given.limit)
        since = ceiling(given.from_, step) if given.from_ else None
        until = ceiling(given.to or now, step)
        of: dict[str, Any] = {"market_key": market.key, "outcome": outcome}
        past = self.service.expired_trades
        if given.fill == "previous":
            until = min(until, ceiling(now, step))
            since = max(since or EARLIEST, back(until, span.total_seconds()))
            of |= {"resolution": given.resolution, "step": f"{step} seconds", "since": since, "until": until}
            trades = (back(since, CLOSE_BEFORE_S), until if given.resolution == "1s" else since)  # that it reads
            text = past.whole(candles.filled, market, range_=trades, **of)
            text = text or self.read(candles.filled, **of)
            return self.required(complements.candles(text) if is_other else text)
        excerpt = EXCERPTS[given.resolution]
        found = newest(
            lambda since: self.read(excerpt, since=since, until=until, limit=given.limit, **of),
            since,
            until,
            span,
            given.limit,
            lambda since: (
                past.newest(excerpt, market, outcome, since=since, until=until, limit=given.limit)
                if given.resolution == "1s"
                else None
            ),
        )
        return complements.candles(found.decode()).encode() if is_other else found


class CandleBars(ChartResource, OutcomeResource):
    """Candles in the UDF column format of charting libraries."""

    def answer(self, given: CandleParameters, **path: str) -> bytes:
        """Return the columns, or the time of the last bar before the range."""
        market, outcome = self.outcome(given, path)
        outcome, is_other = market.traded(outcome)
        step = int(given.resolution) * 60
        until = EARLIEST + timedelta(seconds=given.to) if given.to is not None else datetime.now(UTC)
        since = EARLIEST + timedelta(seconds=given.from_) if given.from_ is not None else back(until, 500 * step)
        bars, last = BARS[given.resolution]
        of = {"market_key": market.key, "outcome": outcome}
        text, count = self.read(bars, step=f"{step} seconds", since=since, until=until, limit=MAX_BUCKETS, **of)
        if count:
            return (complements.bars(text) if is_other else str(text)).encode()
        for before in (timedelta(days=31), timedelta(days=3660)):
            found = self.read(last, since=back(since, before.total_seconds()), until=min(since, until), **of)
            if found is not None:
                return f'{{"s":"no_data","nextTime":{found}}}'.encode()
        return b'{"s":"no_data"}'


def newest(  # noqa: PLR0917 (what a range is)
    excerpt: Callable[[datetime], tuple[str, int]],
    since: datetime | None,
    until: datetime,
    span: timedelta,
    limit: int,
    past: Callable[[datetime], tuple[str, int] | None] = lambda _: None,
    *,
    began: datetime = EARLIEST,
) -> bytes:
    """Return the newest rows of a range. Without a start, query growing windows, so that every query is bounded.

    They reach back to `began`, before which there is nothing. `past` also reads what has expired, once what has not is
    less than the limit.
    """
    windows = [back(until, span.total_seconds() * n) for n in (1, 30, 900)]
    starts = [since] if since is not None else [*(start for start in windows if start > began), began]
    text, count = "[]", 0
    for start in starts:
        text, count = excerpt(start)
        if count >= limit:
            break
    if count < limit and (found := past(starts[-1])) is not None:
        text, _ = found
    return text.encode()


def ceiling(moment: datetime, step: int) -> datetime:
    """Round a moment up to the start of a bucket of `step` seconds."""
    past = (moment - EARLIEST) % timedelta(seconds=step)
    return moment + (timedelta(seconds=step) - past) if past else moment


def back(moment: datetime, seconds: float) -> datetime:
    """Return the moment `seconds` earlier, but not before EARLIEST."""
    return EARLIEST + max(moment - EARLIEST - timedelta(seconds=seconds), timedelta(0))
