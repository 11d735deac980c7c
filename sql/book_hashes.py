"""The exchange's hash of a book, computed as the exchange does, so that packs need not store it.

It is the SHA-1 of the book's summary, as compact JSON with an empty hash. Two of its parts are in no message that the
hash came with, and are found by trying: the fields after the levels, of which the exchange sends the last trade's price
in the first book only, and the instant, which in recordings of 2024 is some milliseconds before the message's. Whatever
is not found is stored: a pack never depends on the exchange keeping to this.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, insort
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ONE = 1_000_000
MAX_LAG_MS = 15
FIRST_ATTEMPTS = 2  # searches of everything, until one succeeds
LATER_ATTEMPTS = 3  # the same since the last success or full book
NEAR, FAR = 5, 100  # steps from the best prices: tried first, and at last

_TICKS = {"0.01": 10_000, "0.001": 1000, "0.1": 100_000, "0.005": 5000, "0.0025": 2500, "0.0001": 100}
_FIELDS = {  # what follows the levels, but for the last trade's price, and the price's steps
    f',"min_order_size":"{least}","tick_size":"{tick}","neg_risk":{negative}': step
    for least, (tick, step), negative in product(("5", "15"), _TICKS.items(), ("false", "true"))
}
_TRADE = ',"last_trade_price":"'


class BookText:
    """The levels of a book as the exchange writes them, worst first on both sides."""

    def __init__(self, levels: Mapping[int, int]) -> None:
        self._texts: dict[int, bytes] = {}
        self._names: tuple[list[int], list[int]] = ([], [])
        self._joined: list[bytes | None] = [None, None]
        self.replace(levels)

    def replace(self, levels: Mapping[int, int]) -> None:
        """Set all levels: sizes by `sql.packs.key`."""
        self._texts = {_name(key): _level(key >> 1, size) for key, size in levels.items()}
        self._names = (
            sorted(_name(key) for key in levels if not key & 1),
            sorted(_name(key) for key in levels if key & 1),
        )
        self._joined = [None, None]

    def set(self, key: int, size: int) -> None:
        """Set one level; 0 removes it."""
        name, names = _name(key), self._names[key & 1]
        if size:
            if name not in self._texts:
                insort(names, name)
            self._texts[name] = _level(key >> 1, size)
        elif self._texts.pop(name, None) is not None:
            del names[bisect_left(names, name)]
        self._joined[key & 1] = None

    def until_fields(self, head: str, ms: int) -> bytes:
        """Return the summary up to the fields after the levels."""
        for side, joined in enumerate(self._joined):
            if joined is None:
                self._joined[side] = b",".join(map(self._texts.__getitem__, self._names[side]))
        bids, asks = self._joined
        return b'%s%d","hash":"","bids":[%s],"asks":[%s]' % (head.encode(), ms, bids, asks)

    def best(self) -> list[int]:
        """Return the best prices of both outcomes."""
        own = [abs(names[-1]) >> 1 for names in self._names if names]
        return [*own, *(ONE - price for price in own)]


def head(market_id: str, token_id: str) -> str:
    """Return how the summary of an outcome's books begins."""
    return f'{{"market":{json.dumps(market_id)},"asset_id":{json.dumps(token_id)},"timestamp":"'


def book_hash(text: BookText, head: str, ms: int, fields: str) -> bytes:
    """Compute a hash. `fields`: what follows the levels."""
    return hashlib.sha1(text.until_fields(head, ms) + fields.encode(), usedforsecurity=False).digest()


class HashSearch:
    """Finds what the hashes of one outcome's books were computed from, one after the other.

    Mostly it is what the last one was computed from. An outcome whose first hashes give nothing is not searched again.
    """

    def __init__(self, market_id: str, token_id: str) -> None:
        self.head = head(market_id, token_id)
        self.fields = "}"
        self.lag_ms = 0
        self._found = False
        self._attempts = FIRST_ATTEMPTS

    @property
    def hopeless(self) -> bool:
        """Whether nothing was found for the outcome's first hashes."""
        return not self._found and not self._attempts

    def find(self, text: BookText, ms: int, hash_: bytes, *, whole: bool) -> bool:
        """Set `fields` and `lag_ms` so that they give a hash, and return whether that succeeded.

        `whole`: the book came as a whole, so that it is certain.
        """
        if whole and self._found:
            self._attempts = LATER_ATTEMPTS
        if not self._now(text, ms, hash_):
            if not self._attempts:
                return False
            self._attempts -= 1
            if not (self._near(text, ms, hash_) or self._anywhere(text, ms, hash_)):
                return False
        self._found, self._attempts = True, LATER_ATTEMPTS
        return True

    def _now(self, text: BookText, ms: int, hash_: bytes) -> bool:
        return book_hash(text, self.head, ms - self.lag_ms, self.fields) == hash_

    def _near(self, text: BookText, ms: int, hash_: bytes) -> bool:
        """Try last trades near the best prices, and other instants."""
        if not self._found:
            return False
        fields, trade, _ = self.fields.partition(_TRADE)
        if trade:
            prices = _prices(text.best(), _FIELDS[fields], NEAR)
            if self._try(text, ms - self.lag_ms, hash_, _with_trade(fields, prices)):
                return True
        return self._lagging(text, ms, hash_, [self.fields])

    def _anywhere(self, text: BookText, ms: int, hash_: bytes) -> bool:
        """Try everything."""
        if self._lagging(text, ms, hash_, ["}", *(f"{fields}}}" for fields in _FIELDS)]):
            return True
        own = self.fields.partition(_TRADE)[0]
        prices = {step: [*_prices(text.best(), step, FAR)] for step in _TICKS.values()}
        every = sorted(_FIELDS.items(), key=lambda item: item[0] != own)
        return self._try(
            text,
            ms - self.lag_ms,
            hash_,
            (each for fields, step in every for each in _with_trade(fields, prices[step])),
        )

    def _lagging(self, text: BookText, ms: int, hash_: bytes, candidates: Sequence[str]) -> bool:
        for lag_ms in range(MAX_LAG_MS + 1):
            if self._try(text, ms - lag_ms, hash_, candidates):
                self.lag_ms = lag_ms
                return True
        return False

    def _try(self, text: BookText, ms: int, hash_: bytes, candidates: Iterable[str]) -> bool:
        begun = hashlib.sha1(text.until_fields(self.head, ms), usedforsecurity=False)
        for fields in candidates:
            tried = begun.copy()
            tried.update(fields.encode())
            if tried.digest() == hash_:
                self.fields = fields
                return True
        return False


def _with_trade(fields: str, prices: Iterable[str]) -> Iterator[str]:
    return (f'{fields}{_TRADE}{price}"}}' for price in prices)


def _prices(best: list[int], step: int, steps: int) -> Iterator[str]:
    """Yield the prices around some as texts, nearest first; the exchange writes some with zeros at the end."""
    yield ""
    near = (
        price // step * step + sign * n * step for n in range(steps) for price in best or [ONE // 2] for sign in (1, -1)
    )
    for price in dict.fromkeys(near):
        if 0 < price < ONE:
            short = _decimal(price)
            yield short
            yield from (short.ljust(length, "0") for length in (4, 5) if len(short) < length)


def _name(key: int) -> int:
    """Return a number that orders the levels of a side as the exchange does."""
    return -key if key & 1 else key


@lru_cache(maxsize=1 << 16)
def _level(price: int, size: int) -> bytes:
    return f'{{"price":"{_decimal(price)}","size":"{_decimal(size)}"}}'.encode()


def _decimal(micro: int) -> str:
    whole, rest = divmod(micro, ONE)
    return f"{whole}.{rest:06d}".rstrip("0") if rest else str(whole)
