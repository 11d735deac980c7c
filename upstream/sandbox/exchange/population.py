"""Population of wallets: some trade very often, most hardly ever."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

COUNT = 2_000
EVEN = 7  # the busiest 7 trade about equally, others ever less: the first twenty make a quarter of all trades


class Population:
    """Wallets weighted by how often they trade; deterministic per seed."""

    def __init__(self, seed: int, count: int = COUNT) -> None:
        dice = random.Random(f"{seed}/wallets")  # noqa: S311 - repeatable dice are what is wanted
        self.wallets = [f"0x{dice.getrandbits(160):040x}" for _ in range(count)]
        self._spread = 1 + count / EVEN

    def at(self, chance: float) -> str:
        """Return the wallet for a number from 0 up to 1; most numbers map to few wallets."""
        return self.wallets[int(EVEN * (self._spread**chance - 1))]

    def places(self, chances: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the indexes of the wallets for numbers from 0 up to 1, as `at` does."""
        found: npt.NDArray[Any] = (EVEN * (self._spread**chances - 1)).astype("int64")
        return found

    def of(self, name: str) -> str:
        """Return a wallet for a trade recorded without one; always the same for the same name."""
        digest = hashlib.blake2b(name.encode(), digest_size=7).digest()
        return self.at(int.from_bytes(digest) / (1 << 56))

    def other(self, than: str, chance: float) -> str:
        """Return a wallet other than a given one."""
        drawn = self.at(chance)
        return drawn if drawn != than else self.at((chance + 0.5) % 1)
