"""State shared by the steps of decoding one batch: contracts, tokens, refused logs and counts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from upstream.chain import abi_words
from upstream.chain.contracts import Kind
from upstream.chain.decoded import COUNTED, REFUSED_KEPT, RefusedLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upstream.chain.abi_words import Bools, Table
    from upstream.chain.contracts import Contract
    from upstream.chain.wire import RawLog

ZERO = bytes(20)


class Tokens(dict[bytes, int]):
    """Token ids as words, numbered in order of appearance."""

    def __missing__(self, word: bytes) -> int:
        number = self[word] = len(self)
        return number

    def text(self) -> list[str]:
        """Return the token ids in decimal, by number."""
        return [str(int.from_bytes(word)) for word in self]


class Addresses(dict[str, int]):
    """Contract indexes by address; nodes write addresses in lower case, other spellings are accepted too."""

    def __missing__(self, text: str) -> int:
        small = text.lower()
        if small == text or small not in self:
            raise KeyError(text)
        return self[small]


class DecodeBatch:
    """State of one call of `decode`."""

    def __init__(self, contracts: Sequence[Contract]) -> None:
        self.contracts = tuple(contracts)
        self.numbers = abi_words.Numbers()
        self.tokens = Tokens()
        self.counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        self.refused: list[RefusedLog] = []
        self._reasons: Counter[str] = Counter()
        self.places = Addresses({f"0x{each.address.hex()}": index for index, each in enumerate(contracts)})
        """Contract indexes by address as text; KeyError for an unknown contract."""

        self.exchanges = self._of(Kind.EXCHANGE_V1, Kind.EXCHANGE_V2, Kind.EXCHANGE_V3)
        self.adapters = self._of(Kind.NEG_RISK_ADAPTER)
        self.between = self.adapters | self._of(Kind.COLLATERAL_ADAPTER)
        self.fee_modules = self._of(Kind.FEE_MODULE)
        self.burns = self._of(Kind.BURN)
        self.collaterals = self._of(Kind.COLLATERAL)
        self.nobody = (
            self.exchanges
            | self.between
            | self.fee_modules
            | self.burns
            | self._of(Kind.CONDITIONAL_TOKENS, Kind.COLLATERAL)
            | {ZERO}
        )

    def refuse(self, log: RawLog, reason: object) -> None:
        """Count a log that cannot be decoded, and keep the first ones per reason."""
        said = str(reason)[:200]
        self.counts["refused"] += 1
        self._reasons[said] += 1
        if self._reasons[said] <= REFUSED_KEPT:
            self.refused.append(RefusedLog(said, log))

    def refuse_where(self, logs: Sequence[RawLog], bad: Bools, reason: str) -> None:
        """Refuse the logs that a mask selects."""
        for at in np.flatnonzero(bad).tolist():
            self.refuse(logs[at], reason)

    def kept(self, logs: Sequence[RawLog], *faults: tuple[Bools, str]) -> Bools:
        """Refuse logs that have one of these faults, with the first that applies; return a mask of the rest."""
        good = np.ones(len(logs), np.bool_)
        for bad, reason in faults:
            if bad.any():
                self.refuse_where(logs, bad & good, reason)
                good &= ~bad
        return good

    def table(self, logs: Sequence[RawLog], length: int) -> tuple[Sequence[RawLog], Table]:
        """Return logs as rows of words, without those that have another shape."""
        try:
            return logs, abi_words.table(logs, length)
        except ValueError:
            good = list(self._shaped(logs, length))
        return good, abi_words.table(good, length)

    def _shaped(self, logs: Sequence[RawLog], length: int) -> Iterable[RawLog]:
        for log in logs:
            try:
                abi_words.table([log], length)
            except ValueError as fault:
                self.refuse(log, fault)
            else:
                yield log

    def _of(self, *kinds: Kind) -> frozenset[bytes]:
        return frozenset(each.address for each in self.contracts if each.kind in kinds)
