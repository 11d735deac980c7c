"""A chain read directly, without the indexer's client: for tests that are not about the client."""

from __future__ import annotations

import msgspec

from upstream.chain.wire import Block, Heads, RawLog


class Plain:
    """The node of a `Chain`, with the finality that a test wants."""

    def __init__(self, chain, finality=64):
        self.chain, self.finality = chain, finality
        self.omit = lambda log: False

    def heads(self):
        head = int(self.chain.node.call("eth_blockNumber"), 16)
        return Heads(head, max(head - self.finality, 0))

    def state(self):
        return []

    def blocks(self, from_, to):
        return [Block(b.number, b.hash, b.parent, b.ts_s) for b in self.chain.blocks(from_, to)]

    def logs(self, from_, to, addresses):
        wanted = {
            "fromBlock": hex(from_),
            "toBlock": hex(to),
            "address": ["0x" + address.hex() for address in addresses],
        }
        found = msgspec.convert(self.chain.node.call("eth_getLogs", wanted), list[RawLog])
        return [log for log in found if not self.omit(log)]
