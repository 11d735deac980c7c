"""Prices of several markets, and prices over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

from api.data.lookup import spelt
from api.endpoints.base.resource import AboutOutcome, ForCharts, Reading
from api.errors import Problem
from api.schemas.requests import EARLIEST, MOST_BUCKETS, CandlesOf, HistoryOf, Ids, TradesOf
from sql.queries import candles, udf

if TYPE_CHECKING:
    from collections.abc import Callable

    import falcon

    from api.server.middleware import Answer

MOST_IDS = 100
UNKNOWN, LONGEST_UNKNOWN = "X-Unknown-Ids", 2000
UNKNOWN_IDS = {
    UNKNOWN: "Ids that name no market, percent-encoded, separated by commas; if they are too many, the last is `...`"
}
STEPS = {"1s": 1, "1m": 60, "5m": 300, "1h": 3600}
EXCERPTS = {"1s": candles.of_1s, "1m": candles.of_1m, "5m": candles.of_5m, "1h": candles.of_1h}
BARS = {"1": (udf.minutes, candles.last_bars_1m), "60": (udf.hours, candles.last_bars_1h)}


def cost_of_rows(given: HistoryOf | TradesOf) -> int:
    """One credit for each started thousand."""
    return -(-given.limit // 1000)


def several(text: str, most: int, name: str = "ids") -> list[str]:
    """Give the names in a comma-separated list, each once."""
    ids = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not 0 < len(ids) <= most:
        raise Problem(
            "invalid_parameter",
            f"`{name}` names {len(ids)} markets",
            hint=f"Allowed: 1 to {most}, separated by commas",
            errors=[{"name": name, "detail": f"{len(ids)} markets", "allowed": f"1 to {most}"}],
        )
    return ids


def cost_of_several(given: Ids) -> int:
    """One credit for each started 25."""
    return -(-len(several(given.ids, MOST_IDS)) // 25)


class Prices(Reading):
    """Live prices of several markets. The object has no place to say which ids name no market, so a header does."""

    def answer(self, given: str, **path: str) -> bytes:
        """Give what was found."""
        return given.encode()

    def tell(self, req: falcon.Request, resp: Answer, body: bytes, tag: str) -> None:
        """Name the unknown ids, too: they are kept behind the tag."""
        tag, _, unknown = tag.partition("@")
        if unknown:
            resp.set_header(UNKNOWN, unknown)
        super().tell(req, resp, body, tag)

    def _tagged(self, given: Ids, path: dict[str, str]) -> tuple[bytes, str]:  # type: ignore[override]
        ids = several(given.ids, MOST_IDS)
        text, unknown = self.read(ids=ids, names=[spelt(each) for each in ids])
        body, tag = super()._tagged(text, path)
        return body, f"{tag}@{listed(unknown)}" if unknown else tag


def listed(unknown: list[str]) -> str:
    """Name ids in a header: percent-encoded, separated by commas, and as many as servers in between surely let pass."""
    names, length = [], 0
    for each in unknown:
        names.append(quote(each, safe=""))
        length += len(names[-1]) + 1
        if length > LONGEST_UNKNOWN:
            names[-1] = "..."
            break
    return ",".join(names)


class History(AboutOutcome):
    """Candles of an outcome."""

    def answer(self, given: HistoryOf, **path: str) -> bytes:
        """Give the newest candles of the range, oldest first."""
        market, outcome = self.outcome(given, path)
        step = STEPS[given.resolution]
        now = datetime.now(UTC)
        span = timedelta(seconds=step * given.limit)
        since = ceiling(given.from_, step) if given.from_ else None
        until = ceiling(given.to or now, step)
        of = {"market_key": market.key, "outcome": outcome}
        if given.fill == "previous":
            until = min(until, ceiling(now, step))
            since = max(since or EARLIEST, back(until, span.total_seconds()))
            text = self.read(
                candles.filled, resolution=given.resolution, step=f"{step} seconds", since=since, until=until, **of
            )
            return self.found(text)
        excerpt = EXCERPTS[given.resolution]
        return newest(
            lambda since: self.read(excerpt, since=since, until=until, limit=given.limit, **of),
            since,
            until,
            span,
            given.limit,
        )


class Bars(ForCharts, AboutOutcome):
    """Candles as charting libraries take them."""

    def answer(self, given: CandlesOf, **path: str) -> bytes:
        """Give columns, or when the last bar before the range was."""
        market, outcome = self.outcome(given, path)
        step = int(given.resolution) * 60
        until = EARLIEST + timedelta(seconds=given.to) if given.to is not None else datetime.now(UTC)
        since = EARLIEST + timedelta(seconds=given.from_) if given.from_ is not None else back(until, 500 * step)
        bars, last = BARS[given.resolution]
        of = {"market_key": market.key, "outcome": outcome}
        text, count = self.read(bars, step=f"{step} seconds", since=since, until=until, limit=MOST_BUCKETS, **of)
        if count:
            return str(text).encode()
        for before in (timedelta(days=31), timedelta(days=3660)):
            found = self.read(last, since=back(since, before.total_seconds()), until=min(since, until), **of)
            if found is not None:
                return f'{{"s":"no_data","nextTime":{found}}}'.encode()
        return b'{"s":"no_data"}'


def newest(
    excerpt: Callable[[datetime], tuple[str, int]], since: datetime | None, until: datetime, span: timedelta, limit: int
) -> bytes:
    """Give the newest rows of a range. Without a beginning, look back further and further: every look has an end."""
    if since is not None:
        return excerpt(since)[0].encode()
    text = "[]"
    for times in (1, 30, 900, None):
        text, count = excerpt(back(until, span.total_seconds() * times) if times else EARLIEST)
        if count >= limit:
            break
    return text.encode()


def ceiling(moment: datetime, step: int) -> datetime:
    """Give the next beginning of a bucket, or this one."""
    past = (moment - EARLIEST) % timedelta(seconds=step)
    return moment + (timedelta(seconds=step) - past) if past else moment


def back(moment: datetime, seconds: float) -> datetime:
    """Give a moment some time before, no earlier than there are any."""
    return EARLIEST + max(moment - EARLIEST - timedelta(seconds=seconds), timedelta(0))
