"""What logs are decoded to.

Amounts are int64 in millionths, as on the chain. Addresses and hashes are numpy voids (`V20`, `V32`), which `.tolist()`
turns into `bytes`. A token is its index in `Decoded.tokens`, a contract its index in the contracts given to `decode`.
Everything is in the order of (block_number, log_index), and no place is there twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from upstream.chain.wire import RawLog

Kind = Literal["split", "merge", "convert", "redeem", "transfer"]
NO_PRICE = -1
NO_MATCH = -1
NO_TOKEN = -1


@dataclass(frozen=True, slots=True, eq=False)
class Fills:
    """OrderFilled of either version, one element a log.

    `maker` owns the order that the row is about; `side` (1 BUY, -1 SELL) is the maker's. `is_taker_order`: the taker's
    own order, whose `taker` is the exchange contract itself.
    """

    block_number: npt.NDArray[np.int64]
    log_index: npt.NDArray[np.int32]
    tx_hash: npt.NDArray[np.void]
    contract: npt.NDArray[np.int16]
    token: npt.NDArray[np.int32]
    maker: npt.NDArray[np.void]
    taker: npt.NDArray[np.void]
    side: npt.NDArray[np.int8]
    size: npt.NDArray[np.int64]
    """Shares."""
    value: npt.NDArray[np.int64]
    """USD."""
    price: npt.NDArray[np.int64]
    """USD a share, rounded half to even; -1: no shares, no USD, or more than 1."""
    fee_usd: npt.NDArray[np.int64]
    """What the order paid; a V1 fee in shares is valued at the fill's own price."""
    is_taker_order: npt.NDArray[np.bool_]
    counted: npt.NDArray[np.bool_]
    """In volume and on the tape: the taker's row of a match, or a maker's row of what has none."""
    match_index: npt.NDArray[np.int32]
    """Log index of the taker's row of the same match (its own, in that row); -1 where there is none."""

    def __len__(self) -> int:
        return len(self.block_number)


class Entry(NamedTuple):
    """What moved positions besides fills. `wallet` is None where the chain does not show whose it was.

    split, merge: `amount` of each outcome of `condition_id`. convert: `amount` of every outcome named by
    `detail["index_set"]`, of the neg-risk market that `condition_id` is. redeem: `amount` is the USD paid out.
    transfer: `amount` of `token` came from `counterparty`, or, below zero, went to it; each transfer between two
    wallets is two entries. Where the token contract's own transfers in the same transaction show them,
    `detail["tokens"]` is the change of each token: [[token id in decimal, shares], …], shares below zero having gone.
    `detail["through"]` is the adapter that acted in the wallet's place.
    """

    block_number: int
    log_index: int
    entry: int
    kind: Kind
    wallet: bytes | None
    counterparty: bytes | None
    condition_id: bytes | None
    token: int
    amount: int
    tx_hash: bytes
    contract: int
    detail: dict[str, Any]


class Resolution(NamedTuple):
    """ConditionResolution: outcome i pays numerators[i] / sum(numerators)."""

    block_number: int
    log_index: int
    tx_hash: bytes
    contract: int
    condition_id: bytes
    oracle: bytes
    question_id: bytes
    numerators: tuple[int, ...]


class Preparation(NamedTuple):
    """ConditionPreparation: a condition is there from now on."""

    block_number: int
    log_index: int
    tx_hash: bytes
    contract: int
    condition_id: bytes
    oracle: bytes
    question_id: bytes
    outcomes: int


class RefusedLog(NamedTuple):
    """A log that is not decoded, and why."""

    reason: str
    log: RawLog


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """Everything that a batch of logs says."""

    fills: Fills
    tokens: Sequence[str]
    """uint256 in decimal, as the exchange writes token ids; `Fills.token` and `Entry.token` point here."""
    ledger: Sequence[Entry]
    resolutions: Sequence[Resolution]
    preparations: Sequence[Preparation]
    refused: Sequence[RefusedLog]
    """At most `REFUSED_KEPT` for each reason; `counts` has all of them."""
    block_hashes: Mapping[int, bytes]
    """By block number, as the logs name them: to be held against the blocks'."""
    block_times: Mapping[int, int]
    """By block number, in seconds, where the node tells it."""
    block_logs: Mapping[int, int]
    """By block number: how many logs came."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How often what was met: see `decode`."""


COUNTED = (
    *("logs", "removed", "duplicates", "ignored", "refused"),
    *("fills", "matches", "maker_rows_without_match", "zero_amounts", "dust", "impossible_prices"),
    *("entries", "unattributed", "inner_steps", "trading_transfers", "foreign_collateral", "fee_refunds"),
)
"""The names in `Decoded.counts`; `decode` says what each means."""
REFUSED_KEPT = 100
"""Raw logs kept of one reason in one batch."""
