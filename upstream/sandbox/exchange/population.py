"""Who trades: some wallets very often, most of them hardly ever."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

COUNT = 2_000
EVEN = 7  # the busiest so many trade about alike, the others ever less: the first twenty make a quarter of all trades


class Population:
    """Wallets by how often they trade; the same seed has the same ones."""

    def __init__(self, seed: int, count: int = COUNT) -> None:
        dice = random.Random(f"{seed}/wallets")  # noqa: S311 - repeatable dice are what is wanted
        self.wallets = [f"0x{dice.getrandbits(160):040x}" for _ in range(count)]
        self._spread = 1 + count / EVEN

    def at(self, chance: float) -> str:
        """Return the wallet that a number from 0 up to 1 falls on; most numbers fall on few of them."""
        return self.wallets[int(EVEN * (self._spread**chance - 1))]

    def places(self, chances: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the places among the wallets that numbers from 0 up to 1 fall on, as `at` does."""
        found: npt.NDArray[Any] = (EVEN * (self._spread**chances - 1)).astype("int64")
        return found

    def of(self, name: str) -> str:
        """Return a wallet for what was recorded without one; the same for ever."""
        digest = hashlib.blake2b(name.encode(), digest_size=7).digest()
        return self.at(int.from_bytes(digest) / (1 << 56))

    def other(self, than: str, chance: float) -> str:
        """Return a wallet that is another one than a given."""
        drawn = self.at(chance)
        return drawn if drawn != than else self.at((chance + 0.5) % 1)
