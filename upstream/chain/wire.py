"""A node's responses as sent: hex text, converted to numbers only where needed."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class RawLog(msgspec.Struct, rename="camel", gc=False):
    """One log of an eth_getLogs answer: `0x…` text throughout.

    `block_timestamp` is "" from older nodes. `removed` logs were undone by a reorganisation, and are not decoded.
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
    """The block fields needed to follow a chain."""

    number: int
    hash: bytes
    parent: bytes
    ts_s: int


class Heads(NamedTuple):
    """The newest block, and the newest that can no longer be reorganised."""

    head: int
    finalized: int
    """As the node reports it; otherwise the head less `FINAL_AFTER` blocks."""
    reported: bool = True
    """Whether the node reported `finalized`."""


FINAL_AFTER = 512
"""Blocks after which one counts as final if no node reports it: a checkpoint's distance."""
