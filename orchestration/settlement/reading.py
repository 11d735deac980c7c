"""Consistent reads of blocks and logs from a chain."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from upstream.chain.contracts import followed
from upstream.chain.decode import decode
from upstream.chain.wire import Block

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from upstream.chain.contracts import Contract
    from upstream.chain.decoded import Decoded
    from upstream.chain.wire import Heads, RawLog


class ChainSource(Protocol):
    """A chain client: `upstream.chain.rpc.Rpc`, or a test's."""

    def heads(self) -> Heads:
        """Return the chain's heads."""

    def blocks(self, from_: int, to: int) -> list[Block]:
        """Return the headers of a range."""

    def logs(self, from_: int, to: int, addresses: Sequence[bytes]) -> list[RawLog]:
        """Return all logs of these contracts within a range."""

    def state(self) -> list[dict[str, Any]]:
        """Return the state of its endpoints, for display."""


class Inconsistent(Exception):  # noqa: N818 (it is no fault of ours: ask again)
    """The data read does not belong to one chain: it changed meanwhile, or two endpoints disagree."""


@dataclass(frozen=True)
class BlockBatch:
    """A range of blocks as read: contains every log of our contracts from `from_block` to `to_block`."""

    from_block: int
    to_block: int
    contracts: tuple[Contract, ...]
    blocks: Sequence[Block]
    """All of the range if read at the head, those with logs if backfilled; ascending."""
    logs: Mapping[int, int]
    """Number of logs per block; blocks without logs are missing."""
    decoded: Decoded
    raw: Sequence[RawLog]

    @property
    def count(self) -> int:
        """Return the number of logs."""
        return sum(self.logs.values())


@dataclass(frozen=True)
class BlockLogs:
    """The logs of a range, counted."""

    logs: list[RawLog]
    counts: dict[int, int]
    hashes: dict[int, bytes]
    """Each block's hash, as in its logs."""

    def of(self, numbers: set[int]) -> list[RawLog]:
        """Return the logs of some blocks."""
        return [log for log in self.logs if int(log.block_number, 16) in numbers]


def logs(source: ChainSource, contracts: tuple[Contract, ...], from_: int, to: int) -> BlockLogs:
    """Read the logs of a range; raise Inconsistent if one is outside it, or a block is described in two ways."""
    found = source.logs(from_, to, followed(contracts))
    # By position: a log that an endpoint lists twice must not be counted twice.
    read = list({(log.block_number, log.log_index): log for log in found if not log.removed}.values())
    counts: dict[int, int] = {}
    hashes: dict[int, bytes] = {}
    for (number_text, hash_text), count in Counter((log.block_number, log.block_hash) for log in read).items():
        number, block_hash = int(number_text, 16), bytes.fromhex(hash_text.removeprefix("0x"))
        if not from_ <= number <= to:
            raise Inconsistent(f"a log of block {number}, asked for {from_} to {to}")
        if hashes.setdefault(number, block_hash) != block_hash:
            raise Inconsistent(f"logs of two blocks {number}")
        counts[number] = counts.get(number, 0) + count
    return BlockLogs(read, counts, hashes)


def linked(blocks: Sequence[Block]) -> Sequence[Block]:
    """Return the blocks; raise Inconsistent if one is not the parent of the next."""
    for parent, child in pairwise(blocks):
        if child.number != parent.number + 1 or child.parent != parent.hash:
            raise Inconsistent(f"block {child.number} does not follow block {parent.number}")
    return blocks


def at_the_head(source: ChainSource, contracts: tuple[Contract, ...], blocks: Sequence[Block]) -> BlockBatch:
    """Read the logs of blocks whose headers are known and linked."""
    read = logs(source, contracts, blocks[0].number, blocks[-1].number)
    for block in blocks:
        if read.hashes.get(block.number, block.hash) != block.hash:
            raise Inconsistent(f"logs of another block {block.number}")
    decoded = decode(read.logs, contracts)
    return BlockBatch(blocks[0].number, blocks[-1].number, contracts, blocks, read.counts, decoded, read.logs)


def below_the_head(source: ChainSource, contracts: tuple[Contract, ...], from_: int, to: int) -> BlockBatch:
    """Read a final range by its logs alone; headers only where the logs have no timestamp."""
    return described(source, contracts, logs(source, contracts, from_, to), from_, to)


def described(source: ChainSource, contracts: tuple[Contract, ...], read: BlockLogs, from_: int, to: int) -> BlockBatch:
    """Build a batch from logs, with the blocks that they belong to."""
    decoded = decode(read.logs, contracts)
    times = dict(decoded.block_times)
    if missing := sorted(set(read.counts) - times.keys()):
        for block in source.blocks(missing[0], missing[-1]):
            if read.hashes.get(block.number, block.hash) != block.hash:
                raise Inconsistent(f"logs of another block {block.number}")
            times.setdefault(block.number, block.ts_s)
    blocks = [Block(number, read.hashes[number], b"", times[number]) for number in sorted(read.counts)]
    return BlockBatch(from_, to, contracts, blocks, read.counts, decoded, read.logs)
