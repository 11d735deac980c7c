"""Logs as a node sends them, encoded by eth_abi and hashed by eth_hash, independently of our code."""

from __future__ import annotations

from typing import Any

from eth_abi import encode
from eth_hash.auto import keccak

from upstream.chain.contracts import POLYGON
from upstream.chain.wire import RawLog

ADDRESS = {contract.name: contract.address for contract in POLYGON}
V1, V2 = ADDRESS["CTF Exchange V1"], ADDRESS["CTF Exchange V2"]
NEG_RISK_V1, NEG_RISK_V2 = ADDRESS["NegRisk CTF Exchange V1"], ADDRESS["NegRisk CTF Exchange V2"]
V3 = ADDRESS["Exchange V3"]
TOKENS, ADAPTER = ADDRESS["Conditional Tokens"], ADDRESS["NegRisk Adapter"]
CTF_COLLATERAL, NEG_RISK_COLLATERAL = ADDRESS["CTF collateral adapter"], ADDRESS["NegRisk collateral adapter"]
FEE_MODULE, BURN, USDC = ADDRESS["Fee module"], ADDRESS["No-token burn address"], ADDRESS["USDC.e"]
ZERO, NO_HASH = bytes(20), bytes(32)
INDEX = {contract.address: number for number, contract in enumerate(POLYGON)}

# Types in Solidity's order; those with a ! are indexed.
SHAPES = {
    "fill_v1": ("OrderFilled", "bytes32! address! address! uint256 uint256 uint256 uint256 uint256"),
    "fill_v2": (
        "OrderFilled",
        "bytes32! address! address! uint8 uint256 uint256 uint256 uint256 bytes32 bytes32",
    ),
    "matched_v1": ("OrdersMatched", "bytes32! address! uint256 uint256 uint256 uint256"),
    "matched_v2": ("OrdersMatched", "bytes32! address! uint8 uint256 uint256 uint256"),
    "fee_v2": ("FeeCharged", "address! uint256"),
    "prepared": ("ConditionPreparation", "bytes32! address! bytes32! uint256"),
    "resolved": ("ConditionResolution", "bytes32! address! bytes32! uint256 uint256[]"),
    "split": ("PositionSplit", "address! address bytes32! bytes32! uint256[] uint256"),
    "merge": ("PositionsMerge", "address! address bytes32! bytes32! uint256[] uint256"),
    "redeemed": ("PayoutRedemption", "address! address! bytes32! bytes32 uint256[] uint256"),
    "transfer": ("TransferSingle", "address! address! address! uint256 uint256"),
    "transfers": ("TransferBatch", "address! address! address! uint256[] uint256[]"),
    "adapter_split": ("PositionSplit", "address! bytes32! uint256"),
    "adapter_merge": ("PositionsMerge", "address! bytes32! uint256"),
    "converted": ("PositionsConverted", "address! bytes32! uint256! uint256"),
    "adapter_redeemed": ("PayoutRedemption", "address! bytes32! uint256[] uint256"),
}


class Chain:
    """Writer of logs in sequence: `tx()` begins the next transaction, `block()` the next block."""

    def __init__(self, number: int = 90_000_000) -> None:
        self.number, self.index, self.count = number, 0, 0
        self.logs: list[RawLog] = []
        self.tx()

    def tx(self) -> None:
        self.count += 1

    def block(self) -> None:
        self.number, self.index = self.number + 1, 0
        self.tx()

    def say(self, address: bytes, shape: str, *args: Any) -> RawLog:
        log = encoded(address, shape, args, block=self.number, index=self.index, tx=tx_hash(self.count))
        self.index += 1
        self.logs.append(log)
        return log


def encoded(address: bytes, shape: str, args: tuple[Any, ...], *, block: int, index: int, tx: bytes) -> RawLog:
    """Return one log."""
    name, described = SHAPES[shape]
    types = described.split()
    plain = [each.removesuffix("!") for each in types]
    topics = [keccak(f"{name}({','.join(plain)})".encode())]
    topics += [
        encode([kind], [value]) for kind, whole, value in zip(plain, types, args, strict=True) if whole[-1] == "!"
    ]
    rest = [(kind, value) for kind, whole, value in zip(plain, types, args, strict=True) if whole[-1] != "!"]
    data = encode([kind for kind, _ in rest], [value for _, value in rest])
    return RawLog(
        address=hexed(address),
        topics=[hexed(topic) for topic in topics],
        data=hexed(data),
        block_number=hex(block),
        block_hash=hexed(keccak(block.to_bytes(8))),
        block_timestamp=hex(1_790_000_000 + 2 * block),
        transaction_hash=hexed(tx),
        log_index=hex(index),
    )


def hexed(raw: bytes) -> str:
    return f"0x{raw.hex()}"


def tx_hash(number: int) -> bytes:
    return keccak(f"tx {number}".encode())


def wallet(number: int) -> bytes:
    return (0xA11CE << 140 | number).to_bytes(20)


def condition(number: int) -> bytes:
    return keccak(f"condition {number}".encode())


def token(number: int) -> int:
    return int.from_bytes(keccak(f"token {number}".encode()))
