"""Generated logs of a busy hour, in the proportions of the exchange's own contracts: seeded, as text."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from upstream.chain.contracts import POLYGON
from upstream.chain.topics import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ADDRESS = {contract.name: contract.address.hex() for contract in POLYGON}
V1, V2, TOKENS = ADDRESS["CTF Exchange V1"], ADDRESS["CTF Exchange V2"], ADDRESS["Conditional Tokens"]
THROUGH, USDC = ADDRESS["CTF collateral adapter"], ADDRESS["USDC.e"]
TOPIC = {(event.kind.value, event.signature.partition("(")[0]): event.topic0 for event in EVENTS}
LOGS_PER_BLOCK = 300


class Logs:
    """Writer of logs in sequence, as eth_getLogs returns them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 (data of a benchmark)
        self.logs: list[dict[str, Any]] = []
        self.block, self.index, self.tx = 91_000_000, 0, 0
        self.wallets = [f"{self.random.getrandbits(160):040x}" for _ in range(5000)]
        self.pairs = [(self.random.getrandbits(256), self.random.getrandbits(256)) for _ in range(500)]

    def append_log(self, address: str, topic: str, indexed: Sequence[str | int], data: Sequence[str | int]) -> None:
        """Append a log."""
        self.logs.append(
            {
                "address": f"0x{address}",
                "topics": [topic, *(f"0x{word(each)}" for each in indexed)],
                "data": "0x" + "".join(map(word, data)),
                "blockNumber": hex(self.block),
                "transactionHash": f"0x{self.tx:064x}",
                "transactionIndex": "0x1",
                "blockHash": f"0x{self.block:064x}",
                "blockTimestamp": hex(1_790_000_000 + self.block),
                "logIndex": hex(self.index),
                "removed": False,
            }
        )
        self.index += 1

    def begin(self) -> None:
        """Begin a transaction, and now and then a block."""
        self.tx += 1
        if self.index > LOGS_PER_BLOCK:
            self.block, self.index = self.block + 1, 0

    def fill(
        self, version: int, owner: str, other: str, *, side: int, token: int, amounts: tuple[int, int], fee: int = 0
    ) -> None:
        """Append OrderFilled; `amounts` are shares and USD."""
        given, got = amounts[::-1] if side == 0 else amounts
        order = self.random.getrandbits(256)
        if version == 1:
            assets = (0, token) if side == 0 else (token, 0)
            self.append_log(V1, TOPIC["exchange_v1", "OrderFilled"], [order, owner, other], [*assets, given, got, fee])
        else:
            rest = [side, token, given, got, fee, 0, 0]
            self.append_log(V2, TOPIC["exchange_v2", "OrderFilled"], [order, owner, other], rest)

    def moved(self, by: str, sender: str, receiver: str, tokens: Sequence[int], amount: int) -> None:
        """Append TransferSingle or TransferBatch."""
        if len(tokens) == 1:
            topic, data = TOPIC["conditional_tokens", "TransferSingle"], [tokens[0], amount]
        else:
            topic, data = TOPIC["conditional_tokens", "TransferBatch"], [64, 160, 2, *tokens, 2, amount, amount]
        self.append_log(TOKENS, topic, [by, sender, receiver], data)

    def split(self, holder: str, pair: tuple[int, int], amount: int) -> None:
        """Append the logs of Conditional Tokens' splitPosition."""
        self.moved(holder, "0", holder, pair, amount)
        topic = TOPIC["conditional_tokens", "PositionSplit"]
        self.append_log(TOKENS, topic, [holder, 0, pair[0] ^ pair[1]], [USDC, 96, amount, 2, 1, 2])

    def match(self) -> None:
        """Append a match of one to three makers; each third mints a set."""
        self.begin()
        draw, pair = self.random, self.random.choice(self.pairs)
        taker, price = draw.choice(self.wallets), draw.randrange(10_000, 990_000, 10_000)
        minted, total = draw.random() < 1 / 3, 0
        amounts = [draw.randrange(1_000_000, 500_000_000) for _ in range(draw.choice((1, 1, 2, 3)))]
        if minted:
            self.split(THROUGH, pair, sum(amounts))
            self.moved(THROUGH, THROUGH, V2, pair, sum(amounts))
        for amount in amounts:
            maker = draw.choice(self.wallets)
            token, side, of = (pair[1], 0, 10**6 - price) if minted else (pair[0], 1, price)
            self.moved(V2, V2 if minted else maker, maker if minted else taker, [token], amount)
            self.fill(2, maker, taker, side=side, token=token, amounts=(amount, amount * of // 10**6))
            total += amount
        if minted:
            self.moved(V2, V2, taker, [pair[0]], total)
        fee = total // 200
        self.append_log(V2, TOPIC["exchange_v2", "FeeCharged"], [self.wallets[0]], [fee])
        self.fill(2, taker, V2, side=0, token=pair[0], amounts=(total, total * price // 10**6), fee=fee)
        topic = TOPIC["exchange_v2", "OrdersMatched"]
        self.append_log(V2, topic, [self.tx, taker], [0, pair[0], total * price // 10**6, total])

    def redemption(self) -> None:
        """Append the logs of a redemption through the collateral adapter."""
        self.begin()
        pair, wallet, amount = self.random.choice(self.pairs), self.random.choice(self.wallets), self.tx + 10**6
        self.moved(THROUGH, wallet, THROUGH, [pair[0]], amount)
        self.moved(THROUGH, THROUGH, "0", [pair[0]], amount)
        topic = TOPIC["conditional_tokens", "PayoutRedemption"]
        self.append_log(TOKENS, topic, [THROUGH, USDC, 0], [pair[0] ^ pair[1], 96, amount, 2, 1, 2])


def word(value: str | int) -> str:
    """Return 32 bytes as hex; text is an address."""
    return f"{value:064x}" if isinstance(value, int) else value.rjust(64, "0")


def fills(count: int) -> list[dict[str, Any]]:
    """Return OrderFilled logs only, alternating between versions."""
    logs = Logs(1)
    for number in range(count):
        if number % 3 == 0:
            logs.begin()
        draw, amount = logs.random, logs.random.randrange(10**6, 10**9)
        owner, other = draw.choice(logs.wallets), draw.choice(logs.wallets)
        how = {"side": number // 2 % 2, "token": draw.choice(logs.pairs)[0], "fee": 500}
        logs.fill(1 + number % 2, owner, other, amounts=(amount, amount // 3), **how)
    return logs.logs


def mixed(count: int) -> list[dict[str, Any]]:
    """Return whole transactions: matches, with one redemption in eight."""
    logs = Logs(2)
    steps = _steps(logs)
    while len(logs.logs) < count:
        next(steps)
    return logs.logs


def _steps(logs: Logs) -> Iterator[None]:
    while True:
        for _ in range(7):
            logs.match()
            yield
        logs.redemption()
        yield
