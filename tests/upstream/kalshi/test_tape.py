import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.upstream.kalshi.samples import (
    CANDLE,
    CUTOFF,
    HISTORICAL_CANDLE,
    ORDERBOOK,
    OTHER,
    SCHEDULE,
    STATUS,
    TICKER,
    TRADE,
)
from tests.upstream.servers import answer, request, serving
from upstream.kalshi.rest.client import Kalshi
from upstream.transport.errors import Malformed, NotFound, Unavailable
from upstream.transport.http import Client

START = datetime(2026, 4, 13, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


# --- Books ---


def test_a_book_is_sorted_and_each_outcomes_asks_are_the_others_bids(api_of):
    api = api_of({f"/markets/{TICKER}/orderbook": {"orderbook_fp": ORDERBOOK}})
    book = api.book(TICKER, depth=2)

    assert book.outcome(0) == (
        [(270_000, 31_540_000), (120_000, 470_000)],
        [(280_000, 20_000_000), (290_000, 25_000_000)],
    )
    assert book.outcome(1) == (
        [(720_000, 20_000_000), (710_000, 25_000_000)],
        [(730_000, 31_540_000), (880_000, 470_000)],
    )
    assert api.asked[0].url.params["depth"] == "2"


@pytest.mark.parametrize("sides", [{}, {"yes_dollars": []}, {"yes_dollars": None, "no_dollars": None}, {"new": 1}])
def test_a_book_with_nothing_in_it_is_a_book(api_of, sides):
    book = api_of({f"/markets/{TICKER}/orderbook": {"orderbook_fp": sides}}).book(TICKER)

    assert (book.yes, book.no) == ([], [])


@pytest.mark.parametrize(
    "sides",
    [
        None,
        [],
        {"yes_dollars": [["0.5"]]},
        {"yes_dollars": [["0.5", "1", "1"]]},
        {"yes_dollars": [["1.5", "1"]]},
        {"no_dollars": [["0.5", "-1"]]},
        {"no_dollars": [[None, "1"]]},
        {"yes_cents": [[50, 1]], "no_dollars": []},  # renamed is not empty
    ],
)
def test_a_book_that_cannot_be_read_is_malformed_and_kept_as_sent(api_of, sides):
    api = api_of({f"/markets/{TICKER}/orderbook": {"orderbook_fp": sides}})

    with pytest.raises(Malformed):
        api.book(TICKER)
    assert [json.loads(refusal.payload) for refusal in api.refused] == [sides]
    assert api_of({}).book(TICKER) is None


def test_books_are_asked_for_in_portions_that_repeat_the_parameter(api_of, clock):
    names = [f"M-{number}" for number in range(100)]

    def books(request):
        asked = request.url.params.get_list("tickers")
        listed = [{"ticker": name, "orderbook_fp": ORDERBOOK} for name in asked if name != "M-7"]
        broken = {"ticker": "M-7", "orderbook_fp": {"yes_dollars": 5}}
        return {"orderbooks": [*listed, *listed[:1], broken, {"ticker": "STRANGE", "orderbook_fp": ORDERBOOK}]}

    api = api_of({"/markets/orderbooks": books})
    began = clock.now
    found = api.books([*names, "M-1"])

    assert sorted(book.ticker for book in found) == sorted(set(names) - {"M-7"})
    assert [len(asked.url.params.get_list("tickers")) for asked in api.asked] == [40, 40, 20]
    assert clock.now - began == pytest.approx(60 / 16)  # each book costs as a request does
    assert len(api.refused) == 3


def test_books_come_over_a_real_connection(clock):
    heads = []

    def refuse(connection):
        heads.append(request(connection))
        connection.sendall(answer(b'{"error":"too many requests"}', status="429 Too Many Requests"))

    def serve(connection):
        heads.append(request(connection))
        body = json.dumps({"orderbooks": [{"ticker": TICKER, "orderbook_fp": ORDERBOOK}]}).encode()
        connection.sendall(answer(body, "Cache-Control: public, max-age=15"))

    with serving(refuse, serve) as url, Client(clock=clock, sleep=clock.sleep) as client:
        [book] = Kalshi(client, f"{url}/trade-api/v2").books([TICKER, OTHER])

    assert book.yes[0] == (270_000, 31_540_000)
    assert len(heads) == 2
    for head in heads:
        first = f"GET /trade-api/v2/markets/orderbooks?tickers={TICKER}&tickers={OTHER} HTTP/1.1\r\n"
        assert head.startswith(first.encode())
        assert b"\r\nAccept-Language: en\r\n" in head
        assert b"KALSHI" not in head.upper()


# --- Trades ---


def trade(number, at, **changes):
    return TRADE | {
        "trade_id": f"{number:08}-f55c-41a6-1cad-35b95c27373b",
        "created_time": at.isoformat().replace("+00:00", "Z"),
        **changes,
    }


def test_a_trade_is_in_terms_of_yes(api_of):
    def only(**changes):
        rows = {"trades": [TRADE | changes], "cursor": ""}
        [found] = api_of({"/historical/cutoff": CUTOFF, "/markets/trades": rows}).trades(TICKER, START)
        return found

    found = only()

    assert (found.trade_id, found.ticker, found.ts_ms) == (TRADE["trade_id"], TICKER, 1_781_538_522_609)
    assert (found.side, found.price, found.size, found.block) == (1, 30_000, 7_770_000, False)
    assert only(taker_outcome_side="no").side == -1
    assert only(taker_outcome_side=None, taker_book_side="ask").side == -1
    assert only(taker_outcome_side=None, taker_book_side=None, taker_side="no").side == -1
    assert only(yes_price_dollars=None).price == 30_000
    assert only(count_fp=7.77, yes_price_dollars=0.03, no_price_dollars=0.97).size == 7_770_000
    assert only(is_block_trade=True).block


@pytest.mark.parametrize(
    "changes",
    [
        {"trade_id": "1"},
        {"trade_id": TRADE["trade_id"] + "0"},
        {"ticker": OTHER},
        {"count_fp": "0.00"},
        {"count_fp": "-1"},
        {"yes_price_dollars": None, "no_price_dollars": None},
        {"no_price_dollars": "0.9600"},
        {"taker_outcome_side": "both"},
        {"taker_outcome_side": None, "taker_book_side": "sell"},
        {"taker_outcome_side": None, "taker_book_side": None, "taker_side": None},
        {"created_time": None},
        {"created_time": "0001-01-01T00:00:00Z"},
        {"created_time": "9999-01-01T00:00:00Z"},
    ],
)
def test_a_trade_that_cannot_be_is_refused_and_its_neighbours_kept(api_of, changes):
    rows = {"trades": [TRADE | changes, TRADE], "cursor": ""}
    api = api_of({"/historical/cutoff": CUTOFF, "/markets/trades": rows})

    assert len(list(api.trades(TICKER, START))) == 1
    assert [json.loads(refusal.payload) for refusal in api.refused] == [TRADE | changes]


def test_trades_before_the_cutoff_come_from_history_and_each_once(api_of):
    cutoff = datetime(2026, 3, 25, tzinfo=UTC)
    rows = [trade(number, cutoff + timedelta(hours=12 - 6 * number)) for number in range(6)]
    moved = [trade(9, cutoff + timedelta(days=2))]
    api = api_of(
        {
            "/historical/cutoff": CUTOFF,
            "/markets/trades": {"trades": [*moved, *rows[:3]], "cursor": ""},
            "/historical/trades": {"trades": rows[1:], "cursor": ""},  # what moved there meanwhile, too
        }
    )
    found = [each.trade_id for each in api.trades(TICKER)]

    assert found == [row["trade_id"] for row in [*moved, *rows]]
    live, history = api.asked[1:]
    assert dict(live.url.params) == {"limit": "1000", "ticker": TICKER}
    assert history.url.params["max_ts"] == str(int(cutoff.timestamp()) + 86_400 + 2)


def test_trades_that_the_cutoff_may_pass_meanwhile_are_looked_for_in_history_too(api_of):
    cutoff = datetime(2026, 3, 25, tzinfo=UTC)
    rows = [trade(1, cutoff + timedelta(hours=2))]  # the cutoff has passed it when the live listing is read
    api = api_of(
        {
            "/historical/cutoff": CUTOFF,
            "/markets/trades": {"trades": [], "cursor": ""},
            "/historical/trades": {"trades": rows, "cursor": ""},
        }
    )

    assert [each.trade_id for each in api.trades(TICKER, cutoff + timedelta(hours=1))] == [rows[0]["trade_id"]]


def test_trades_are_asked_for_a_little_wider_and_kept_to_their_times(api_of):
    rows = [trade(number, START + timedelta(seconds=10 - number)) for number in range(12)]
    api = api_of({"/historical/cutoff": CUTOFF, "/markets/trades": {"trades": rows, "cursor": ""}})
    found = list(api.trades(TICKER, START, START + timedelta(seconds=8)))

    assert [each.trade_id for each in found] == [row["trade_id"] for row in rows[2:11]]
    assert len(api.asked) == 2  # nothing of it is history
    assert dict(api.asked[1].url.params) == {
        "limit": "1000",
        "ticker": TICKER,
        "min_ts": str(int(START.timestamp()) - 1),
        "max_ts": str(int(START.timestamp()) + 10),
    }


def test_trades_of_combos_are_left_out_of_the_whole_exchanges(api_of):
    rows = [TRADE, TRADE | {"ticker": "KXMVESPORTS-1"}]
    api = api_of({"/historical/cutoff": CUTOFF, "/markets/trades": {"trades": rows, "cursor": ""}})

    assert [each.ticker for each in api.trades(start=START)] == [TICKER]
    assert api.refused == []


# --- Candles ---


def test_candles_begin_at_their_start_and_those_without_trades_are_left_out(api_of):
    untraded = [CANDLE | {"volume_fp": "0.00"}, CANDLE | {"volume_fp": "0.00", "price": {}}]
    api = api_of(
        {f"/series/KXFED/markets/{TICKER}/candlesticks": {"ticker": TICKER, "candlesticks": [*untraded, CANDLE]}}
    )
    [candle] = api.candles("KXFED", TICKER, START, START + MINUTE)

    assert candle.start == datetime.fromtimestamp(1776109260 - 60, UTC)
    assert (candle.open, candle.high, candle.low, candle.close) == (560_000, 580_000, 550_000, 570_000)
    assert (candle.mean, candle.volume, candle.open_interest) == (565_000, 12_500_000, 10_869_000_000)
    assert dict(api.asked[0].url.params) == {
        "start_ts": str(int(START.timestamp())),
        "end_ts": str(int(START.timestamp()) + 60),
        "period_interval": "1",
    }


@pytest.mark.parametrize(("after_start", "after_end"), [(0, 60), (0, 0), (60, 60)])  # both included, or one
def test_a_candle_that_ends_between_two_requests_comes_once(api_of, after_start, after_end):
    def candles(request):
        first, last = (int(request.url.params[name]) for name in ("start_ts", "end_ts"))
        ends = range(first + after_start, last + after_end, 60)
        return {"ticker": TICKER, "candlesticks": [CANDLE | {"end_period_ts": end} for end in ends]}

    api = api_of({f"/series/KXFED/markets/{TICKER}/candlesticks": candles})
    found = [candle.start for candle in api.candles("KXFED", TICKER, START, START + 6000 * MINUTE)]

    assert found == sorted(set(found))
    assert set(found) >= {START + number * MINUTE for number in range(5999)}


def test_a_settled_markets_candles_come_from_history_in_their_other_format(api_of):
    api = api_of({f"/historical/markets/{TICKER}/candlesticks": {"candlesticks": [HISTORICAL_CANDLE]}})
    found = list(api.candles("KXFED", TICKER, START, START + 12_000 * MINUTE, 1))

    assert len(found) == 1  # the same in each answer
    assert found[0].close == 570_000
    assert [asked.url.path.count("historical") for asked in api.asked] == [0, 1, 1, 1]
    with pytest.raises(NotFound):
        list(api_of({}).candles("KXFED", TICKER, START, START + MINUTE))


@pytest.mark.parametrize(
    "changes",
    [
        {"volume_fp": None},
        {"volume_fp": "-1"},
        {"price": {}},
        {"price": None},
        {"price": CANDLE["price"] | {"low_dollars": "0.5650"}},
        {"price": CANDLE["price"] | {"high_dollars": "1.2"}},
        {"end_period_ts": 0},
        {"end_period_ts": "soon"},
    ],
)
def test_a_candle_that_cannot_be_is_refused(api_of, changes):
    rows = [CANDLE | changes, CANDLE]
    api = api_of({f"/series/KXFED/markets/{TICKER}/candlesticks": {"candlesticks": rows}})

    assert len(list(api.candles("KXFED", TICKER, START, START + MINUTE))) == 1
    assert [json.loads(refusal.payload) for refusal in api.refused] == [CANDLE | changes]


def test_candles_of_several_markets_come_in_portions(api_of):
    def candles(request):
        names = request.url.params["market_tickers"].split(",")
        listed = [{"market_ticker": name, "candlesticks": [CANDLE]} for name in [*names, "STRANGE"]]
        return {"markets": listed}

    api = api_of({"/markets/candlesticks": candles})
    names = [f"M-{number}" for number in range(50)]
    found = list(api.candles_of_markets(names, START, START + timedelta(hours=5), 60))

    assert [candle.ticker for candle in found] == names
    assert {candle.period for candle in found} == {timedelta(hours=1)}
    assert len(api.asked) == 2


# --- The exchange ---


@pytest.mark.parametrize("status", [200, 503, 504])
def test_the_status_is_read_even_from_an_exchange_that_is_not_available(api_of, status):
    resume = {"exchange_estimated_resume_time": "2026-11-26T10:00:00Z"}
    found = api_of({"/exchange/status": httpx.Response(status, json=STATUS | resume)}).status()

    assert [found.trading(index) for index in (0, 1, 2)] == [True, True, False]
    assert found.resumes_at() == datetime(2026, 11, 26, 10, tzinfo=UTC)


def test_a_status_without_parts_holds_for_all(api_of):
    closed = {"exchange_active": True, "trading_active": False}

    assert not api_of({"/exchange/status": closed}).status().trading(3)
    assert api_of({"/exchange/status": STATUS}).status().resumes_at() is None
    with pytest.raises(Unavailable):
        api_of({"/exchange/status": httpx.Response(500, json=closed)}).status()
    with pytest.raises(Malformed):
        api_of({"/exchange/status": httpx.Response(503, text="<html>")}).status()


def test_the_schedule_has_the_weekly_pause_and_maintenance(api_of):
    schedule = api_of({"/exchange/schedule": SCHEDULE}).schedule()
    [week] = schedule.standard_hours

    assert [(hours.open_time, hours.close_time) for hours in week.thursday] == [("00:00", "03:00"), ("05:00", "00:00")]
    assert week.monday == []
    assert schedule.maintenance_windows[0].end_datetime == "2026-12-01T09:00:00Z"


def test_the_cutoff_is_two_times(api_of):
    found = api_of({"/historical/cutoff": CUTOFF | {"trades_created_ts": "2026-03-26T00:00:00Z"}}).cutoff()

    assert (found.markets, found.trades) == (datetime(2026, 3, 25, tzinfo=UTC), datetime(2026, 3, 26, tzinfo=UTC))
    with pytest.raises(Malformed, match="not times"):
        api_of({"/historical/cutoff": CUTOFF | {"market_settled_ts": "soon"}}).cutoff()
