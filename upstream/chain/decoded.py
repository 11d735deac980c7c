"""Decoded logs: fills, ledger entries, resolutions and refused logs.

Amounts are int64 in millionths, as on the chain. Addresses and hashes are numpy voids (`V20`, `V32`), which `.tolist()`
turns into `bytes`. A token is its index in `Decoded.tokens`, a contract its index in the contracts given to `decode`.
Everything is ordered by (block_number, log_index), without duplicates.
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
class FillColumns:
    """OrderFilled of either version, one element per log.

    `maker` owns the row's order; `side` (1 BUY, -1 SELL) is the maker's. `is_taker_order`: the taker's own order, whose
    `taker` is the exchange contract itself.
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
    """USD per share, rounded half to even; -1: no shares, no USD, or more than 1."""
    fee_usd: npt.NDArray[np.int64]
    """Fee of the order; a V1 fee in shares is valued at the fill's own price."""
    is_taker_order: npt.NDArray[np.bool_]
    counted: npt.NDArray[np.bool_]
    """Counted in volume and published: the taker's row of a match, or a maker's row without a match."""
    match_index: npt.NDArray[np.int32]
    """Log index of the taker's row of the same match (its own, in that row); -1 without a match."""

    def __len__(self) -> int:
        return len(self.block_number)


class Entry(NamedTuple):
    """A position change other than a fill. `wallet` is None where the chain does not show the owner.

    split, merge: `amount` of each outcome of `condition_id`. convert: `amount` of every outcome in
    `detail["index_set"]` of the neg-risk market `condition_id`. redeem: `amount` is the USD paid out.
    transfer: `amount` of `token` came from `counterparty`, or, below zero, went to it; each transfer between two
    wallets is two entries. Where the token contract's own transfers in the same transaction show it,
    `detail["tokens"]` is the change of each token: [[token id in decimal, shares], …], negative for shares given away.
    `detail["through"]` is the adapter that acted for the wallet.
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
    """ConditionPreparation: a condition exists from now on."""

    block_number: int
    log_index: int
    tx_hash: bytes
    contract: int
    condition_id: bytes
    oracle: bytes
    question_id: bytes
    outcomes: int


class RefusedLog(NamedTuple):
    """A log that was not decoded, and why."""

    reason: str
    log: RawLog


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """Result of decoding a batch of logs."""

    fills: FillColumns
    tokens: Sequence[str]
    """uint256 in decimal, as the exchange writes token ids; `Fills.token` and `Entry.token` point here."""
    ledger: Sequence[Entry]
    resolutions: Sequence[Resolution]
    preparations: Sequence[Preparation]
    refused: Sequence[RefusedLog]
    """At most `REFUSED_KEPT` per reason; `counts` has the totals."""
    block_hashes: Mapping[int, bytes]
    """By block number, as the logs state them: to be compared with the blocks'."""
    block_times: Mapping[int, int]
    """By block number, in seconds, where the node sends it."""
    block_logs: Mapping[int, int]
    """Number of logs by block number."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Count of each case: see `decode`."""


COUNTED = (
    *("logs", "removed", "duplicates", "ignored", "refused"),
    *("fills", "matches", "maker_rows_without_match", "zero_amounts", "dust", "impossible_prices"),
    *("entries", "unattributed", "inner_steps", "trading_transfers", "foreign_collateral", "fee_refunds"),
)
"""Keys of `Decoded.counts`, documented in `decode`."""
REFUSED_KEPT = 100
"""Raw logs kept per reason and batch."""
