import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.upstream import recordings
from upstream.polymarket.data_api.client import DataApi, number_repeats
from upstream.polymarket.data_api.trades import read_v1
from upstream.transport.errors import Incomplete, Malformed


@pytest.fixture
def api_of(client_of):
    return lambda handler, **options: DataApi(client_of(handler), "https://data.test", **options)


@pytest.fixture(scope="module")
def nobel(recorded):
    return recordings.data_api_trades(recorded / "trades" / "data_api_trades_nobel_2025-10.csv.gz")


@pytest.fixture(scope="module")
def hundred(recorded):
    return json.loads((recorded / "trades" / "data_api_trades_100_raw.json").read_bytes())


def ending(walk):
    """Return what pagination yields before it raises Incomplete, and why."""
    brought = []
    try:
        brought.extend(iter(walk.__next__, None))
    except Incomplete as end:
        return brought, str(end)
    raise AssertionError("the walk ended as if it were complete")


def snake(row):
    """Return a v1 row in v2's spelling."""
    names = {
        "proxyWallet": "proxy_wallet",
        "asset": "token_id",
        "conditionId": "condition_id",
        "eventSlug": "event_slug",
        "outcomeIndex": "outcome_index",
        "transactionHash": "transaction_hash",
    }
    return {names.get(name, name): value for name, value in row.items()}


class Offsets:
    """A v1 listing: bare arrays by limit and offset, at most `most` per page; past `cap` the page at the cap comes."""

    def __init__(self, rows, *, most=500, cap=10_000, on_page=lambda rows: None):
        self.rows = list(rows)
        self.most = most
        self.cap = cap
        self.on_page = on_page
        self.asked = []

    def __call__(self, request):
        params = request.url.params
        self.asked.append(dict(params))
        start = min(int(params["offset"]), self.cap)
        page = self.rows[start : start + min(int(params["limit"]), self.most)]
        self.on_page(self.rows)
        return httpx.Response(200, json=page)


class Cursors:
    """A v2 listing: enveloped pages by cursor, filtered by condition and by time."""

    def __init__(self, rows, *, size=None):
        self.rows = [snake(row) for row in rows]
        self.size = size
        self.asked = []

    def __call__(self, request):
        params = request.url.params
        self.asked.append(dict(params))
        wanted = params.get("condition_id")
        rows = [row for row in self.rows if not wanted or row["condition_id"] in wanted.split(",")]
        start, size = int(params.get("cursor", 0)), self.size or int(params["limit"])
        following = str(start + size) if start + size < len(rows) else None
        return httpx.Response(
            200,
            json={
                "data": rows[start : start + size],
                "pagination": {"has_more": following is not None, "next_cursor": following},
            },
        )


# --- Trades ---


def test_recorded_trades_are_read_with_all_that_tells_them_apart(hundred):
    for sent in hundred:
        trade = read_v1(json.dumps(sent).encode())
        assert trade.token_id == sent["asset"]
        assert trade.market == sent["conditionId"]
        assert trade.ts.timestamp() == sent["timestamp"]
        assert trade.side == {"BUY": 1, "SELL": -1}[sent["side"]]
        assert (trade.price, trade.size) == (round(sent["price"] * 10**6), round(sent["size"] * 10**6))
        assert trade.tx_hash == sent["transactionHash"].lower()
        assert trade.wallet == sent["proxyWallet"].lower()
        assert (trade.outcome, trade.outcome_name) == (sent["outcomeIndex"], sent["outcome"])
        assert (trade.slug, trade.event_slug, trade.title) == (sent["slug"], sent["eventSlug"], sent["title"])


def test_both_spellings_say_the_same(api_of, hundred):
    old = list(api_of(Offsets(hundred)).trades_v1())
    new = list(api_of(Cursors(hundred, size=30)).trades())

    assert old == new
    assert len(old) == 100


def test_a_walk_brings_every_trade_of_the_markets_in_portions(api_of, nobel):
    rows = nobel[:1500]
    conditions = sorted({row["conditionId"] for row in rows})
    listing = Cursors(rows, size=400)

    walked = list(api_of(listing).trades([*conditions, "0x" + "0" * 64]))

    expected = sorted((row["transactionHash"], row["asset"], row["proxyWallet"]) for row in rows)
    assert sorted((trade.tx_hash, trade.token_id, trade.wallet) for trade in walked) == expected
    assert {params["condition_id"].count(",") + 1 for params in listing.asked} == {20, 1}
    assert {(params["taker_only"], params["limit"]) for params in listing.asked} == {("true", "1000")}


def test_a_walk_keeps_to_its_times_even_if_the_exchange_does_not(api_of, hundred):
    newest = datetime.fromtimestamp(hundred[0]["timestamp"], UTC)
    start, end = newest - timedelta(seconds=12), newest - timedelta(seconds=4)
    listing = Cursors(hundred)

    walked = list(api_of(listing).trades(start=start, end=end))

    assert len(walked) == sum(start.timestamp() <= row["timestamp"] <= end.timestamp() for row in hundred) > 0
    assert (listing.asked[0]["start"], listing.asked[0]["end"]) == (
        str(int(start.timestamp())),
        str(int(end.timestamp())),
    )


def test_the_page_that_the_exchange_serves_again_past_its_cap_is_noticed(api_of, nobel):
    """As recorded in October 2025: a collector asked on past the cap and stored 3,500 rows a second time."""
    recorded_pages = [nobel[start : start + 500] for start in range(0, 5000, 500)]
    asked = []

    def as_recorded(request):
        asked.append(int(request.url.params["offset"]))
        return httpx.Response(200, json=recorded_pages[len(asked) - 1])

    kept, reason = ending(api_of(as_recorded).trades_v1(cap=10_000))

    assert "came before" in reason
    assert asked == [0, 500, 1000, 1500]
    assert len(kept) == 1500
    assert Counter((t.tx_hash, t.token_id, t.wallet, t.side, t.price, t.size) for t in kept) == Counter(
        (t.tx_hash, t.token_id, t.wallet, t.side, t.price, t.size)
        for t in (read_v1(json.dumps(row).encode()) for row in nobel[:1500])
    )


def test_a_listing_longer_than_the_cap_says_so(api_of, nobel):
    listing = Offsets(nobel[:1500] * 3, most=1000)
    rows = [row | {"timestamp": row["timestamp"] - 1000 * (number // 1500)} for number, row in enumerate(listing.rows)]
    listing.rows = rows

    walked, reason = ending(api_of(listing).trades_v1())

    assert "offset cap of 3000" in reason
    assert len(walked) == 4000
    assert [params["offset"] for params in listing.asked] == ["0", "1000", "2000", "3000"]


@pytest.mark.parametrize(("most", "pushed"), [(300, 1), (300, 4), (290, 3), (899, 2)])
def test_rows_that_slide_into_the_next_page_are_not_taken_twice(api_of, nobel, most, pushed):
    fresh = iter(nobel[1000:1100])
    listing = Offsets(nobel[:900], most=most, on_page=lambda rows: [rows.insert(0, next(fresh)) for _ in range(pushed)])

    walked = list(api_of(listing).trades_v1())

    assert Counter(trade.tx_hash for trade in walked) == Counter(row["transactionHash"] for row in nobel[:900])


def test_a_short_page_is_not_taken_for_the_last(api_of, nobel):
    assert len(list(api_of(Offsets(nobel[:700], most=50)).trades_v1())) == 700


def test_cursors_and_pages_that_come_again_are_noticed(api_of, hundred):
    def circle(rows_of, cursor_of):
        asked = []

        def handler(request):
            asked.append(request)
            number = len(asked)
            rows = [snake(row) for row in rows_of(number)]
            return httpx.Response(
                200, json={"data": rows, "pagination": {"has_more": True, "next_cursor": cursor_of(number)}}
            )

        return handler

    with pytest.raises(Incomplete, match="cursor 'a' came again"):
        list(api_of(circle(lambda n: hundred[n : n + 1], lambda n: "a")).trades())
    with pytest.raises(Incomplete, match="came before"):
        list(api_of(circle(lambda n: hundred, lambda n: f"c{n}")).trades())
    with pytest.raises(Incomplete, match="empty page"):
        list(api_of(circle(lambda n: [], lambda n: f"c{n}")).trades())


def test_a_bad_row_is_refused_and_its_neighbours_are_kept(api_of, hundred):
    bad = [
        hundred[1] | {"side": ""},
        hundred[2] | {"price": 1.5},
        hundred[3] | {"size": -1},
        hundred[4] | {"timestamp": 0},
        hundred[5] | {"transactionHash": "0x1"},
        hundred[6] | {"asset": ""},
        7,
    ]
    kept = []

    walked = list(api_of(Offsets([hundred[0], *bad, hundred[9]]), on_refused=kept.append).trades_v1())

    assert [trade.tx_hash for trade in walked] == [hundred[0]["transactionHash"], hundred[9]["transactionHash"]]
    assert [json.loads(refusal.payload) for refusal in kept] == bad
    assert {refusal.source for refusal in kept} == {"data_api"}


@pytest.mark.parametrize("body", [{"error": "x"}, [], {"data": 1}, {"data": [], "pagination": {"next_cursor": 5}}])
def test_a_page_of_another_shape_is_malformed(api_of, body):
    with pytest.raises(Malformed):
        list(api_of(lambda request: httpx.Response(200, json=body)).trades())


def test_an_envelope_without_pagination_is_the_last(api_of):
    assert list(api_of(lambda request: httpx.Response(200, json={"data": []})).trades()) == []


def test_exact_repeats_within_a_transaction_are_numbered(hundred):
    def trade(**changes):
        return read_v1(json.dumps(hundred[0] | changes).encode())

    other = "0x" + "12" * 32
    trades = [
        trade(),
        trade(proxyWallet="0xAB"),
        trade(transactionHash=other),
        trade(size=1),
        trade(),
        trade(transactionHash=other),
        trade(transactionHash=None),
        trade(transactionHash=None),
        trade(transactionHash=None, timestamp=hundred[0]["timestamp"] - 1),
    ]

    assert [each.n for each in number_repeats(trades)] == [0, 1, 0, 0, 2, 1, 0, 1, 0]


def test_numbering_does_not_grow_without_end(hundred, monkeypatch):
    monkeypatch.setattr("upstream.polymarket.data_api.trades.MAX_REMEMBERED_TRANSACTIONS", 2)
    hashes = ["0x" + digit * 64 for digit in "1231"]
    trades = [read_v1(json.dumps(hundred[0] | {"transactionHash": each}).encode()) for each in hashes]

    assert [trade.n for trade in number_repeats(trades)] == [0, 0, 0, 0]


# --- Wallets ---


def test_recorded_positions_are_read(api_of, recorded):
    folder = recorded / "data_api"
    for name in ("positions.json", "pscanner_positions.json"):
        sent = json.loads((folder / name).read_bytes())
        kept = []
        read = list(api_of(Offsets(sent), on_refused=kept.append).positions("0xab", sizeThreshold=0))

        assert kept == []
        assert [(row.asset, row.size, row.avg_price) for row in read] == [
            (row["asset"], row["size"], row["avgPrice"]) for row in sent
        ]
    for name in ("polyprinter_closed_positions_sample.json", "pscanner_closed_positions.json"):
        sent = json.loads((folder / name).read_bytes())
        kept = []
        closed = list(api_of(Offsets(sent), on_refused=kept.append).closed_positions("0xab"))

        assert kept == []
        assert [(row.asset, row.realized_pnl) for row in closed] == [(row["asset"], row["realizedPnl"]) for row in sent]


def test_recorded_activity_is_read_trade_or_not(api_of, recorded):
    kinds = Counter()
    for name in ("activity_all.json", "polyprinter_activity_sample.json", "pscanner_activity.json"):
        sent = json.loads((recorded / "data_api" / name).read_bytes())
        kept = []
        listing = Offsets(sent)
        read = list(api_of(listing, on_refused=kept.append).activity("0xab", start=datetime(2026, 1, 1, tzinfo=UTC)))

        assert kept == []
        assert listing.asked[0]["start"] == "1767225600"
        for row, activity in zip(sent, read, strict=True):
            kinds[activity.type] += 1
            assert activity.type == row["type"]
            assert activity.size == round(row["size"] * 10**6)
            assert (activity.side is None) == (row["side"] == "")
            assert activity.outcome == (None if row["outcomeIndex"] == 999 else row["outcomeIndex"])

    assert kinds["TRADE"] > 30
    assert len(kinds) >= 3
