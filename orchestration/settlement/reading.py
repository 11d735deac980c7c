"""Blocks and logs, read from a chain in such a way that they belong together."""

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


class Source(Protocol):
    """A chain that can be asked: `upstream.chain.rpc.Rpc`, or a test's."""

    def heads(self) -> Heads:
        """Tell how far the chain is."""

    def blocks(self, from_: int, to: int) -> list[Block]:
        """Give the headers of a range."""

    def logs(self, from_: int, to: int, addresses: Sequence[bytes]) -> list[RawLog]:
        """Give all logs of these contracts within a range."""

    def state(self) -> list[dict[str, Any]]:
        """Tell how its endpoints are; for people."""


class Inconsistent(Exception):  # noqa: N818 (it is no fault of ours: ask again)
    """What was read does not belong to one chain: it changed meanwhile, or two endpoints disagree."""


@dataclass(frozen=True)
class Batch:
    """A range of blocks as read: every log of ours between `from_block` and `to_block` is in it."""

    from_block: int
    to_block: int
    contracts: tuple[Contract, ...]
    blocks: Sequence[Block]
    """All of the range where its head was followed, and those with logs where it was filled in; ascending."""
    logs: Mapping[int, int]
    """How many logs each block has; none where it is missing."""
    decoded: Decoded
    raw: Sequence[RawLog]

    @property
    def count(self) -> int:
        """How many logs it has."""
        return sum(self.logs.values())


@dataclass(frozen=True)
class Logs:
    """The logs of a range, counted."""

    logs: list[RawLog]
    counts: dict[int, int]
    hashes: dict[int, bytes]
    """The block's hash, as its logs have it."""

    def of(self, numbers: set[int]) -> list[RawLog]:
        """Pick the logs of some blocks."""
        return [log for log in self.logs if int(log.block_number, 16) in numbers]


def logs(source: Source, contracts: tuple[Contract, ...], from_: int, to: int) -> Logs:
    """Read the logs of a range; Inconsistent when one is not of it, or a block is told in two ways."""
    found = source.logs(from_, to, followed(contracts))
    # By place: an endpoint that lists one twice must not have it counted twice.
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
    return Logs(read, counts, hashes)


def linked(blocks: Sequence[Block]) -> Sequence[Block]:
    """Give blocks as they are; Inconsistent when one is not the next one's parent."""
    for parent, child in pairwise(blocks):
        if child.number != parent.number + 1 or child.parent != parent.hash:
            raise Inconsistent(f"block {child.number} does not follow block {parent.number}")
    return blocks


def at_the_head(source: Source, contracts: tuple[Contract, ...], blocks: Sequence[Block]) -> Batch:
    """Read the logs of blocks whose headers are known and linked."""
    read = logs(source, contracts, blocks[0].number, blocks[-1].number)
    for block in blocks:
        if read.hashes.get(block.number, block.hash) != block.hash:
            raise Inconsistent(f"logs of another block {block.number}")
    decoded = decode(read.logs, contracts)
    return Batch(blocks[0].number, blocks[-1].number, contracts, blocks, read.counts, decoded, read.logs)


def below_the_head(source: Source, contracts: tuple[Contract, ...], from_: int, to: int) -> Batch:
    """Read a range that is final by its logs alone; headers only where the logs do not tell the time."""
    return described(source, contracts, logs(source, contracts, from_, to), from_, to)


def described(source: Source, contracts: tuple[Contract, ...], read: Logs, from_: int, to: int) -> Batch:
    """Make a batch of logs, with the blocks that they are of."""
    decoded = decode(read.logs, contracts)
    times = dict(decoded.block_times)
    if missing := sorted(set(read.counts) - times.keys()):
        for block in source.blocks(missing[0], missing[-1]):
            if read.hashes.get(block.number, block.hash) != block.hash:
                raise Inconsistent(f"logs of another block {block.number}")
            times.setdefault(block.number, block.ts_s)
    blocks = [Block(number, read.hashes[number], b"", times[number]) for number in sorted(read.counts)]
    return Batch(from_, to, contracts, blocks, read.counts, decoded, read.logs)
