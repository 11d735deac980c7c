"""What a node sends, as it sends it: hex text, turned into numbers only where it is needed."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class RawLog(msgspec.Struct, rename="camel", gc=False):
    """One log of an eth_getLogs answer: `0x…` text throughout.

    `block_timestamp` is "" from older nodes. `removed` logs were taken back by a reorganisation, and are not decoded.
    """

    address: str
    topics: list[str]
    data: str
    block_number: str
    transaction_hash: str
    log_index: str
    block_hash: str = ""
    transaction_index: str | None = None
    block_timestamp: str | None = None
    removed: bool = False


class Block(NamedTuple):
    """A block, as far as it is needed to follow a chain."""

    number: int
    hash: bytes
    parent: bytes
    ts_s: int


class Heads(NamedTuple):
    """How far the chain is, and up to where it cannot be reorganised any more."""

    head: int
    finalized: int
    """Told by the node; where none tells it, the head less `FINAL_AFTER` blocks."""
    told: bool = True
    """Whether `finalized` was told."""


FINAL_AFTER = 512
"""Blocks after which one counts as final where no node says so: a checkpoint's distance."""
