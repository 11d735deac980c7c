"""The exchange's hashes are computed again from books, and what is unknown of them is found."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal

import pytest

from sql.book_hashes import BookText, HashSearch, book_hash, head
from sql.packs import key

MARKET, TOKEN, MS = "0x" + "ab" * 32, "7132", 1_795_000_000_000
FIELDS = ',"min_order_size":"5","tick_size":"0.01","neg_risk":false'
LEVELS = {key(1, 400_000): 5_000_000, key(1, 390_000): 250_000, key(-1, 420_000): 1, key(-1, 500_000): 10**12}


def traded(price):
    return f'{FIELDS},"last_trade_price":"{price}"}}'


def micro(decimal):
    return int(Decimal(decimal) * 10**6)


@pytest.fixture
def search():
    return HashSearch(MARKET, TOKEN)


@pytest.fixture
def text():
    return BookText(LEVELS)


def hashed(text, ms, fields):
    return book_hash(text, head(MARKET, TOKEN), ms, fields)


def test_the_hashes_of_recorded_books_are_found(recorded):
    with gzip.open(recorded / "clob/books_fed-decision-in-june-825.json.gz") as file:
        books = json.load(file)

    for book in books:
        levels = {
            key(side, micro(level["price"])): micro(level["size"])
            for side, name in ((1, "bids"), (-1, "asks"))
            for level in book[name]
        }
        search = HashSearch(book["market"], book["asset_id"])

        assert search.find(BookText(levels), int(book["timestamp"]), bytes.fromhex(book["hash"]), whole=True)
        assert search.lag_ms == 0
        assert search.fields == (
            f',"min_order_size":"{book["min_order_size"]}","tick_size":"{book["tick_size"]}",'
            f'"neg_risk":{json.dumps(book["neg_risk"])},"last_trade_price":"{book["last_trade_price"]}"}}'
        )
    assert len(books) == 10


def test_a_book_changed_level_by_level_has_the_text_of_the_same_book_as_a_whole():
    text = BookText({})
    for name, size in [(key(1, 100_000), 7), (key(-1, 999_000), 7), *LEVELS.items(), (key(1, 400_000), 3)]:
        text.set(name, size)
        text.until_fields("", MS)
    for name in (key(1, 100_000), key(-1, 999_000), key(-1, 1)):
        text.set(name, 0)

    assert text.until_fields("", MS) == BookText({**LEVELS, key(1, 400_000): 3}).until_fields("", MS)
    assert b'"bids":[{"price":"0.39","size":"0.25"},{"price":"0.4","size":"0.000003"}]' in text.until_fields("", MS)
    assert b'"asks":[{"price":"0.5","size":"1000000"},{"price":"0.42","size":"0.000001"}]' in text.until_fields("", MS)


@pytest.mark.parametrize(
    "fields",
    [
        *("}", FIELDS + "}", traded("0.07").replace('"5"', '"15"')),
        *map(traded, ("", "0.41", "0.40", "0.410", "0.9", "0.01", "0.58")),
    ],
)
@pytest.mark.parametrize("lag_ms", [0, 9])
def test_what_is_unknown_of_a_first_book_is_found(search, text, fields, lag_ms):
    found = search.find(text, MS, hashed(text, MS - lag_ms, fields), whole=True)

    assert found == (lag_ms == 0 or "last_trade" not in fields)
    assert not found or (search.fields, search.lag_ms) == (fields, lag_ms)


def test_what_changes_later_is_found(search, text):
    assert search.find(text, MS, hashed(text, MS, traded("0.4")), whole=True)
    text.set(key(1, 400_000), 0)

    for fields in (traded("0.4"), traded("0.39"), traded("0.07"), traded("0.33").replace("0.01", "0.001")):
        assert search.find(text, MS, hashed(text, MS, fields), whole=False)
        assert search.fields == fields
    assert search.find(text, MS + 3, hashed(text, MS, fields), whole=False)
    assert search.lag_ms == 3


def test_hashes_of_another_origin_are_given_up_soon(search, text):
    for nth in range(2):
        assert not search.hopeless
        assert not search.find(text, MS, bytes([nth]) * 20, whole=True)

    assert search.hopeless


def test_a_book_out_of_step_is_searched_for_again_from_its_next_whole_one_on(search, text):
    assert search.find(text, MS, hashed(text, MS, traded("0.4")), whole=True)
    for nth in range(3):
        assert not search.find(text, MS, bytes([nth]) * 20, whole=False)

    assert not search.find(text, MS, hashed(text, MS, traded("0.41")), whole=False)
    assert search.find(text, MS, hashed(text, MS, traded("0.41")), whole=True)
    assert not search.hopeless
