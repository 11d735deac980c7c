"""OrderFilled of either version to arrays, and grouping of rows into matches."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from upstream.chain import abi_words
from upstream.chain.decoded import NO_MATCH, NO_PRICE, FillColumns
from upstream.transport.numbers import MICRO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upstream.chain.abi_words import Bools, Ints, Table
    from upstream.chain.batch import DecodeBatch
    from upstream.chain.wire import RawLog

DUST = 10_000
"""Shares in millionths: below it, one unit of rounding in the value moves the price by more than the smallest tick."""


class DecodedRows(NamedTuple):
    """The fills of one version, before sorting."""

    logs: Sequence[RawLog]
    table: Table
    token: Table
    buys: Bools
    given: Ints
    got: Ints
    fee: Ints
    fee_in_shares: Bools


def fills(batch: DecodeBatch, v1: Sequence[RawLog], v2: Sequence[RawLog], matched: Sequence[RawLog]) -> FillColumns:
    """Decode the fills of both versions, in order."""
    parts = [_v1(batch, v1), _v2(batch, v2)]
    logs = [log for part in parts for log in part.logs]
    block = np.array([batch.numbers[log.block_number] for log in logs], np.int64)
    place = np.array([batch.numbers[log.log_index] for log in logs], np.int32)
    contract = np.array([batch.places[log.address] for log in logs], np.int16)
    buys, given, got, fee, in_shares = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("buys", "given", "got", "fee", "fee_in_shares")
    )
    maker, taker, tx_hash = (
        np.concatenate([abi_words.as_voids(part.table[:, slot, first:]) for part in parts])
        for slot, first in ((1, 12), (2, 12), (-1, 0))
    )
    size, value = np.where(buys, got, given), np.where(buys, given, got)
    price = _rounded(value, MICRO, size)
    price[(size == 0) | (value > size) | (price == 0)] = NO_PRICE
    fee_usd = np.where(in_shares, _rounded(fee, value, size), fee)
    token_words = [each for part in parts for each in abi_words.as_voids(part.token).tolist()]
    token = np.array([batch.tokens[each] for each in token_words], np.int32)
    exchanges = np.array([each.address for each in batch.contracts], "V20")
    is_taker_order = taker == exchanges[contract]

    keep = fee_usd >= 0
    batch.refuse_where(logs, ~keep, "a fee beyond int64")
    order = np.lexsort((place, block))
    order = order[keep[order]]
    again = np.zeros(len(order), np.bool_)
    again[1:] = (np.diff(block[order]) == 0) & (np.diff(place[order]) == 0)
    batch.counts["duplicates"] += int(again.sum())
    order = order[~again]

    batch.counts["fills"] += len(order)
    batch.counts["zero_amounts"] += int(((size == 0) | (value == 0))[order].sum())
    batch.counts["dust"] += int(((size > 0) & (size < DUST))[order].sum())
    batch.counts["impossible_prices"] += int(((size > 0) & (value > 0) & (price == NO_PRICE))[order].sum())
    made = FillColumns(
        block[order],
        place[order],
        tx_hash[order],
        contract[order],
        token[order],
        maker[order],
        taker[order],
        np.where(buys, 1, -1).astype(np.int8)[order],
        size[order],
        value[order],
        price[order],
        fee_usd[order],
        is_taker_order[order],
        is_taker_order[order],
        np.full(len(order), NO_MATCH, np.int32),
    )
    _group(batch, made, matched)
    batch.counts["matches"] += int(is_taker_order[order].sum())
    return made


def _v1(batch: DecodeBatch, logs: Sequence[RawLog]) -> DecodedRows:
    """Read orderHash, maker, taker | makerAssetId, takerAssetId, makerAmountFilled, takerAmountFilled, fee."""
    logs, table = batch.table(logs, 5)
    pays, gets = abi_words.nonzero(table[:, 3]), abi_words.nonzero(table[:, 4])  # asset 0 is the collateral
    (given, beyond_1), (got, beyond_2), (fee, beyond_3) = (abi_words.amounts(table[:, slot]) for slot in (5, 6, 7))
    good = batch.kept(logs, (pays == gets, "two tokens, or none"), *_common(table, beyond_1 | beyond_2 | beyond_3))
    buys = ~pays
    token = np.where(buys[:, None], table[:, 4], table[:, 3])
    logs = [log for log, kept in zip(logs, good, strict=True) if kept] if not good.all() else logs
    return DecodedRows(logs, table[good], token[good], buys[good], given[good], got[good], fee[good], buys[good])


def _v2(batch: DecodeBatch, logs: Sequence[RawLog]) -> DecodedRows:
    """Read orderHash, maker, taker | side, tokenId, makerAmountFilled, takerAmountFilled, fee, builder, metadata."""
    logs, table = batch.table(logs, 7)
    (given, beyond_1), (got, beyond_2), (fee, beyond_3) = (abi_words.amounts(table[:, slot]) for slot in (5, 6, 7))
    side = table[:, 3, 31]
    strange = abi_words.nonzero(table[:, 3, :31]) | (side > 1)
    good = batch.kept(
        logs,
        (strange, "a side that is neither BUY nor SELL"),
        (~abi_words.nonzero(table[:, 4]), "no token"),
        *_common(table, beyond_1 | beyond_2 | beyond_3),
    )
    logs = [log for log, kept in zip(logs, good, strict=True) if kept] if not good.all() else logs
    buys = side[good] == 0
    return DecodedRows(
        logs, table[good], table[good, 4], buys, given[good], got[good], fee[good], np.zeros(len(buys), np.bool_)
    )


def _common(table: Table, beyond: Bools) -> list[tuple[Bools, str]]:
    not_addresses = abi_words.nonzero(table[:, 1, :12]) | abi_words.nonzero(table[:, 2, :12])
    return [(not_addresses, "a maker or taker that is no address"), (beyond, "an amount beyond int64")]


def _rounded(factor: Ints, by: Ints | int, over: Ints) -> Ints:
    """Compute factor * by / over, rounded half to even; 0 for 0 / 0, and -1 beyond int64.

    In int64 where exact, which is nearly always; otherwise with Python integers.
    """
    safe = np.maximum(over, 1)
    large = (factor.astype(np.float64) * by > 9e18) | (over > abi_words.MAX_AMOUNT // 2)
    product = np.where(large, 0, factor) * np.where(large, 0, by)
    quotient, rest = np.divmod(product, safe)
    twice = 2 * rest  # cannot overflow: `over` is at most half of the largest
    made: Ints = np.where(over == 0, 0, quotient + ((twice > safe) | ((twice == safe) & (quotient % 2 == 1))))
    for at in np.flatnonzero(large & (over != 0)):
        exact = round(Fraction(int(factor[at]) * int(by if isinstance(by, int) else by[at]), int(over[at])))
        made[at] = exact if exact <= abi_words.MAX_AMOUNT else -1
    return made


def _group(batch: DecodeBatch, made: FillColumns, matched: Sequence[RawLog]) -> None:
    """Set the taker's log index on all rows of a match, and count each match once.

    The exchange logs the makers' rows, then the taker's, then OrdersMatched. So a maker's row belongs to the next
    taker's row of its transaction and contract, unless an OrdersMatched is between (then the match's taker row is
    missing) or it names another taker (then it is a plain fillOrder).
    """
    ends = _places(batch, matched)
    place = (made.block_number << 31) | made.log_index
    for contract in np.unique(made.contract):
        rows = np.flatnonzero(made.contract == contract)
        own = rows[made.is_taker_order[rows]]
        made.match_index[own] = made.log_index[own]
        others = rows[~made.is_taker_order[rows]]
        following = np.searchsorted(place[own], place[others])
        last = following == len(own)
        next_own = own[np.where(last, 0, following)] if len(own) else np.zeros(len(others), np.int64)
        belongs = ~last
        if len(own):
            belongs &= (made.tx_hash[others] == made.tx_hash[next_own]) & (made.taker[others] == made.maker[next_own])
            belongs &= made.block_number[others] == made.block_number[next_own]
            of_contract = ends.get(int(contract), np.zeros(0, np.int64))
            belongs &= np.searchsorted(of_contract, place[others]) == np.searchsorted(of_contract, place[next_own])
        made.match_index[others[belongs]] = made.log_index[next_own[belongs]]
        made.counted[others[~belongs]] = True
        batch.counts["maker_rows_without_match"] += int((~belongs).sum())


def _places(batch: DecodeBatch, matched: Sequence[RawLog]) -> dict[int, Ints]:
    """Return the positions of OrdersMatched by contract, in order."""
    found: dict[int, list[int]] = {}
    for log in matched:
        place = (batch.numbers[log.block_number] << 31) | batch.numbers[log.log_index]
        found.setdefault(batch.places[log.address], []).append(place)
    return {contract: np.sort(np.array(places, np.int64)) for contract, places in found.items()}
