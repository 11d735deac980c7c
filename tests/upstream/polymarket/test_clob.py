import json
from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest

from tests.upstream import recordings
from upstream.polymarket.clob.client import Clob
from upstream.transport.errors import Incomplete, Malformed, Rejected, Unavailable


@pytest.fixture
def clob_of(client_of):
    return lambda handler, **options: Clob(client_of(handler), "https://clob.test", **options)


@pytest.fixture(scope="module")
def books(recorded):
    return json.loads(recordings.text(recorded / "clob" / "books_fed-decision-in-june-825.json.gz"))


class Engine:
    """POST /books and GET /book as documented, over recorded books; it spoils a whole call for a token "bad"."""

    def __init__(self, books):
        self.books = {book["asset_id"]: book for book in books}
        self.calls = []

    def __call__(self, request):
        if request.method == "GET":
            book = self.books.get(request.url.params["token_id"])
            missing = {"error": "No orderbook exists for the requested token id"}
            return httpx.Response(200, json=book) if book else httpx.Response(404, json=missing)
        asked = [each["token_id"] for each in json.loads(request.content)]
        self.calls.append(len(asked))
        if "bad" in asked:
            return httpx.Response(400, json={"error": "Invalid token id"})
        return httpx.Response(200, json=[self.books[token] for token in reversed(asked) if token in self.books])


def test_recorded_books_are_read_best_first_to_the_last_level(clob_of, books):
    engine = Engine(books)

    read = clob_of(engine).books(book["asset_id"] for book in books)

    assert engine.calls == [10]
    assert [book.asset_id for book in read] == [book["asset_id"] for book in reversed(books)]
    for book, sent in zip(reversed(read), books, strict=True):
        for side, name, best in ((book.bids, "bids", max), (book.asks, "asks", min)):
            levels = {Decimal(level["price"]): Decimal(level["size"]) for level in sent[name]}
            assert {Decimal(at) / 10**6: Decimal(size) / 10**6 for at, size in side} == levels
            assert side == sorted(side, reverse=best is max)
            assert Decimal(side[0][0]) / 10**6 == best(levels)
        assert (book.market, book.ts_ms, book.hash) == (sent["market"], int(sent["timestamp"]), sent["hash"])
        assert (book.tick_size, book.min_order_size, book.neg_risk) == (1_000, 5_000_000, True)


def test_many_books_are_asked_for_in_portions_and_each_once(clob_of, books):
    engine = Engine(books)
    tokens = [books[0]["asset_id"], *(str(number) for number in range(249)), books[0]["asset_id"]]

    read = clob_of(engine).books(tokens)

    assert engine.calls == [100, 100, 50]
    assert [book.asset_id for book in read] == [books[0]["asset_id"]]
    assert clob_of(engine).books([]) == []


def test_one_bad_token_does_not_spoil_the_books_of_the_others(clob_of, books):
    kept = []
    tokens = [book["asset_id"] for book in books]

    read = clob_of(Engine(books), on_refused=kept.append).books([*tokens[:3], "bad", *tokens[3:]])

    assert {book.asset_id for book in read} == set(tokens)
    assert [(refusal.source, refusal.payload) for refusal in kept] == [("clob", "bad")]


def test_a_book_that_cannot_be_read_is_refused_and_the_others_are_kept(clob_of, books):
    worse = books[1] | {"bids": [{"price": "2", "size": "1"}]}
    stranger = books[2] | {"asset_id": "12345"}
    kept = []
    clob = clob_of(
        lambda request: httpx.Response(200, json=[worse, books[0], stranger, books[0], 7]), on_refused=kept.append
    )

    assert [book.asset_id for book in clob.books([books[0]["asset_id"], books[1]["asset_id"]])] == [
        books[0]["asset_id"]
    ]
    assert [json.loads(refusal.payload) for refusal in kept] == [worse, 7]


def test_faults_of_the_exchange_are_not_mistaken_for_missing_books(clob_of):
    with pytest.raises(Unavailable):
        clob_of(lambda request: httpx.Response(503)).books(["1"])
    with pytest.raises(Rejected):
        clob_of(lambda request: httpx.Response(403)).books(["1", "2"])


def test_one_book_and_none(clob_of, books):
    clob = clob_of(Engine(books))

    assert clob.book(books[3]["asset_id"]).hash == books[3]["hash"]
    assert clob.book("1") is None


@pytest.mark.parametrize(
    "change", [{"asset_id": "1"}, {"timestamp": "soon"}, {"bids": None, "asks": None}, {"bids": 1}]
)
def test_a_book_that_is_not_the_one_asked_for_is_malformed(clob_of, books, change):
    with pytest.raises(Malformed):
        clob_of(lambda request: httpx.Response(200, json=books[0] | change)).book(books[0]["asset_id"])


def test_recorded_price_history_is_read_whole(clob_of, recorded):
    for name, points in (("prices_history_1m_f10", 4456), ("prices_history_1w_f5", 2013)):
        sent = json.loads((recorded / "clob" / f"{name}.json").read_bytes())
        history = clob_of(lambda request, sent=sent: httpx.Response(200, json=sent)).prices_history("1", interval="1m")

        assert len(history) == points
        assert history == sorted(history, key=lambda point: point.ts)
        assert [(point.ts.timestamp(), point.price) for point in history] == [
            (point["t"], round(point["p"] * 10**6)) for point in sent["history"]
        ]


def test_a_price_that_is_none_is_refused_alone(clob_of):
    asked, kept = [], []

    def handler(request):
        asked.append(dict(request.url.params))
        points = [
            {"t": 1770480000, "p": 0.5},
            {"t": 1770480060, "p": 1.5},
            {"t": 0, "p": 0.5},
            {"t": 1770470000, "p": 0},
        ]
        return httpx.Response(200, json={"history": points})

    start = datetime(2026, 2, 7, tzinfo=UTC)
    history = clob_of(handler, on_refused=kept.append).prices_history("42", start=start, fidelity=1)

    assert [point.price for point in history] == [0, 500_000]
    assert len(kept) == 2
    assert asked == [{"market": "42", "startTs": "1770422400", "fidelity": "1"}]


def test_recorded_market_pages_are_walked_to_the_end_cursor(clob_of, recorded):
    first = json.loads(recordings.text(recorded / "clob" / "markets_page1_raw.json.gz"))
    second = json.loads(recordings.text(recorded / "clob" / "sampling_markets_1000.json.gz"))
    pages = {None: first, "MTAwMA==": second | {"next_cursor": "LTE="}}
    asked, kept = [], []

    def handler(request):
        asked.append(request.url.params.get("next_cursor"))
        return httpx.Response(200, json=pages[asked[-1]])

    markets = list(clob_of(handler, on_refused=kept.append).markets())

    assert kept == []
    assert asked == [None, "MTAwMA=="]
    assert [market.condition_id for market in markets] == [m["condition_id"] for m in first["data"] + second["data"]]
    winners = [market.winning_token() for market in markets]
    assert winners == [
        next((token["token_id"] for token in sent["tokens"] if token["winner"]), None)
        if sum(token["winner"] for token in sent["tokens"]) == 1
        else None
        for sent in first["data"] + second["data"]
    ]
    assert sum(winner is not None for winner in winners) > 500


def test_a_market_that_cannot_be_read_is_refused_and_a_circle_is_noticed(clob_of):
    page = {"data": [{"condition_id": "0x1"}, {"condition_id": 1}], "next_cursor": "MTAwMA=="}
    kept = []
    walk = clob_of(lambda request: httpx.Response(200, json=page), on_refused=kept.append).markets()

    assert next(walk).condition_id == "0x1"
    assert next(walk).condition_id == "0x1"
    with pytest.raises(Incomplete, match="came again"):
        next(walk)
    assert [json.loads(refusal.payload) for refusal in kept] == [{"condition_id": 1}] * 2


def test_one_market(clob_of):
    def handler(request):
        if request.url.path == "/markets/0xab":
            return httpx.Response(200, json={"condition_id": "0xab"})
        return httpx.Response(404)

    clob = clob_of(handler)

    assert clob.market("0xab").condition_id == "0xab"
    assert clob.market("0xcd") is None
