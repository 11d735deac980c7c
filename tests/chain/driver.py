"""Driver of the test chain: mines blocks of events, reorganises, and reads the chain back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.chain import abi, contracts
from tests.chain.anvil import GENESIS_S
from tests.chain.events import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chain.anvil import Anvil

GAS = hex(1 << 40)
RUN = bytes.fromhex("4d618e3b")  # run(address[],bytes[])

Transaction = Event | list[Event]


@dataclass(frozen=True)
class Block:
    """One block of the canonical chain."""

    number: int
    hash: bytes
    parent: bytes
    ts_s: int
    transactions: tuple[bytes, ...]


class Chain:
    """The canonical chain of a node, at genesis to begin with.

    A transaction is an event or a list of them; a block is a list of transactions. Blocks are two seconds apart, and
    the same steps give the same hashes, so that two nodes driven alike have equal chains.
    """

    def __init__(self, node: Anvil, *, genesis_s: int = GENESIS_S, block_s: int = 2) -> None:
        self.node = node
        self._genesis_s, self._block_s = genesis_s, block_s
        self._forks = 0
        self._nonces = [0]  # by block: how many transactions there have been
        self.reset()

    @property
    def url(self) -> str:
        """The node's own URL, without a proxy."""
        return self.node.url

    @property
    def head(self) -> int:
        """The number of the newest block."""
        return len(self._nonces) - 1

    def reset(self) -> None:
        """Return to genesis, in a few milliseconds whatever the chain's length."""
        if head := int(self.node.call("eth_blockNumber"), 16):
            self.node.call("anvil_rollback", head)
        self._forks, self._nonces = 0, [0]
        self.node.batch([("anvil_dropAllTransactions", []), ("anvil_setCoinbase", [_miner(0)])])

    def emit(self, *transactions: Transaction) -> Block:
        """Mine and return one block of these transactions."""
        return self.extend([list(transactions)])[0]

    def mine(self, blocks: int = 1) -> list[Block]:
        """Mine empty blocks."""
        return self.extend([[] for _ in range(blocks)])

    def extend(self, blocks: Sequence[Sequence[Transaction]]) -> list[Block]:
        """Mine several blocks."""
        first = len(self._nonces)
        for transactions in blocks:
            nonce = self._nonces[-1]
            if transactions:
                # The node runs the calls of one request concurrently: a call that must wait is a request of its own.
                numbered = enumerate(transactions, nonce)
                self.node.batch([("eth_sendTransaction", [self._call(told, number)]) for number, told in numbered])
            self.node.call("evm_mine", hex(self._genesis_s + len(self._nonces) * self._block_s))
            self._nonces.append(nonce + len(transactions))
        mined = self.blocks(first)
        for block, transactions in zip(mined, blocks, strict=True):
            assert len(block.transactions) == len(transactions), f"{block}: {len(transactions)} transactions were sent"
        return mined

    def reorg(self, depth: int, blocks: Sequence[Sequence[Transaction]] | None = None) -> list[Block]:
        """Replace the newest `depth` blocks by `blocks`, or by as many empty ones.

        The new branch may be shorter or longer than the old one. It differs from it in every hash, even where its
        transactions are the same.
        """
        assert 0 < depth <= self.head, f"{depth} blocks of {self.head}"
        new = [[] for _ in range(depth)] if blocks is None else blocks
        self._forks += 1
        del self._nonces[-depth:]
        self.node.call("anvil_rollback", depth)
        self.node.call("anvil_setCoinbase", _miner(self._forks))  # another miner makes other hashes
        return self.extend(new)

    def swap(self, depth: int) -> list[Block]:
        """Replace the newest `depth` blocks by as many empty ones at once, by the node's own anvil_reorg."""
        assert 0 < depth <= self.head, f"{depth} blocks of {self.head}"
        self.node.call("anvil_reorg", depth, [])
        self._nonces[-depth:] = [self._nonces[-depth - 1]] * depth
        return self.blocks(self.head - depth + 1)

    def blocks(self, from_: int = 0, to: int | None = None) -> list[Block]:
        """Return the blocks as the node has them now."""
        numbers = range(from_, (self.head if to is None else to) + 1)
        return [_block(b) for b in self.node.batch([("eth_getBlockByNumber", [hex(n), False]) for n in numbers])]

    def logs(self, from_: int = 0, to: int | None = None) -> list[dict[str, Any]]:
        """Return every log of the canonical chain in order, in JSON-RPC format, read block by block from the receipts.

        Nothing here uses eth_getLogs, ranges or filters: it is the reference an indexer is compared with.
        """
        numbers = range(from_, (self.head if to is None else to) + 1)
        receipts = self.node.batch([("eth_getBlockReceipts", [hex(n)]) for n in numbers])
        return [log for of_block in receipts for receipt in of_block for log in receipt["logs"]]

    def snapshot(self) -> tuple[int, str]:
        """Return a point to revert to, once."""
        return self.head, self.node.call("evm_snapshot")

    def revert(self, snapshot: tuple[int, str]) -> None:
        """Revert to a snapshot; everything after it is undone."""
        head, identity = snapshot
        assert self.node.call("evm_revert", identity), f"snapshot {identity} was used before"
        del self._nonces[head + 1 :]

    def _call(self, transaction: Transaction, nonce: int) -> dict[str, str]:
        told = [transaction] if isinstance(transaction, Event) else transaction
        targets = [contracts.address(event.contract) for event in told]
        data = RUN + abi.encode(["address[]", "bytes[]"], [targets, [event.call() for event in told]])
        to = f"0x{contracts.CALLER.hex()}"
        return {"from": self.node.account, "to": to, "data": f"0x{data.hex()}", "gas": GAS, "nonce": hex(nonce)}


def _miner(fork: int) -> str:
    return f"0x{fork:040x}"


def _block(told: dict[str, Any]) -> Block:
    return Block(
        number=int(told["number"], 16),
        hash=bytes.fromhex(told["hash"][2:]),
        parent=bytes.fromhex(told["parentHash"][2:]),
        ts_s=int(told["timestamp"], 16),
        transactions=tuple(bytes.fromhex(identity[2:]) for identity in told["transactions"]),
    )
