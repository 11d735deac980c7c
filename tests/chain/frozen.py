"""Frozen node: knows the chain as of one moment, and responds from that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Frozen:
    """Every block and log that a node had at creation."""

    def __init__(self, ask: Callable[[list[tuple[str, list[Any]]]], list[Any]]) -> None:
        head, finalized = ask([("eth_blockNumber", []), ("eth_getBlockByNumber", ["finalized", False])])
        self.head, self.finalized = int(head, 16), int(finalized["number"], 16)
        numbers = range(self.head + 1)
        self._blocks: list[Any] = ask([("eth_getBlockByNumber", [hex(n), False]) for n in numbers])
        self._numbers = {block["hash"]: number for number, block in enumerate(self._blocks)}
        (self._logs,) = ask([("eth_getLogs", [{"fromBlock": "0x0", "toBlock": hex(self.head)}])])

    def answer(self, method: str, params: list[Any]) -> Any:
        """Return the result of one call."""
        match method:
            case "eth_blockNumber":
                return hex(self.head)
            case "eth_getBlockByNumber":
                number = self._number(params[0])
                return self._blocks[number] if number <= self.head else None
            case "eth_getBlockByHash":
                number = self._numbers.get(params[0])
                return None if number is None else self._blocks[number]
            case "eth_getLogs":
                return [log for log in self._logs if self._asked(log, params[0])]
        raise AssertionError(f"{method} is not among what a frozen node answers")

    def _number(self, block: str) -> int:
        tags = {"earliest": 0, "latest": self.head, "pending": self.head, "safe": self.finalized}
        return {**tags, "finalized": self.finalized}[block] if not block.startswith("0x") else int(block, 16)

    def _asked(self, log: dict[str, Any], wanted: dict[str, Any]) -> bool:
        if "blockHash" in wanted:
            if log["blockHash"] != wanted["blockHash"]:
                return False
        else:
            first, last = (self._number(wanted.get(end, "latest")) for end in ("fromBlock", "toBlock"))
            if not first <= int(log["blockNumber"], 16) <= last:
                return False
        addresses = wanted.get("address") or []
        addresses = [addresses] if isinstance(addresses, str) else addresses
        if addresses and log["address"] not in [address.lower() for address in addresses]:
            return False
        for place, topic in enumerate(wanted.get("topics") or []):
            allowed = [topic] if isinstance(topic, str) else topic
            if allowed and (len(log["topics"]) <= place or log["topics"][place] not in allowed):
                return False
        return True
