"""JSON-RPC node of the simulated chain, responding as public Polygon endpoints do."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import msgspec

from upstream.sandbox.chain.chain import CHAIN_ID, Chain, EncodedLog, SandboxBlock
from upstream.sandbox.chain.logs import EXCHANGE, NOBODY
from upstream.sandbox.chain.refusals import refusal
from upstream.sandbox.common.answers import answer, route
from upstream.sandbox.faults import RPC

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from upstream.sandbox.faults import Faults

MAX_CALLS = 1_000  # in one batch
MAX_BLOCKS, MAX_LOGS = 2_000, 10_000  # of one eth_getLogs
SHARE = 1 << 32
EMPTY_BLOOM = "0x" + "0" * 512
EMPTY_WORD = "0x" + "0" * 64


class Call(msgspec.Struct):
    """One call of a request."""

    method: str
    params: list[Any] = []
    id: Any = None


class LogFilter(msgspec.Struct, rename="camel"):
    """Parameters of eth_getLogs; `address` and `topics` may be missing, one, or several."""

    from_block: str = "latest"
    to_block: str = "latest"
    block_hash: str | None = None
    address: str | list[str] | None = None
    topics: list[str | list[str] | None] = []

    def finds(self) -> Callable[[EncodedLog], bool]:
        """Return a predicate for one log."""
        given = [self.address] if isinstance(self.address, str) else self.address or []
        addresses = {address.lower() for address in given}
        wanted = [
            (place, {topic.lower() for topic in ([topics] if isinstance(topics, str) else topics)})
            for place, topics in enumerate(self.topics)
            if topics
        ]
        length = len(self.topics)

        def found(log: EncodedLog) -> bool:
            return (
                (not addresses or log.address in addresses)
                and len(log.topics) >= length
                and all(log.topics[place] in among for place, among in wanted)
            )

        return found


class CallError(Exception):
    """A call that is answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error


class ChainApi:
    """Methods of a node of the simulated chain."""

    def __init__(self, chain: Chain, faults: Faults, *, max_blocks: int = MAX_BLOCKS, max_logs: int = MAX_LOGS) -> None:
        self._chain, self._faults = chain, faults
        self.max_blocks, self.max_logs = max_blocks, max_logs
        self._calls = msgspec.json.Decoder(Call | list[Call]).decode
        self._methods: dict[str, Callable[[list[Any], int], Any]] = {
            "eth_chainId": lambda _params, _head: hex(CHAIN_ID),
            "net_version": lambda _params, _head: str(CHAIN_ID),
            "web3_clientVersion": lambda _params, _head: "presage-sandbox/simulated",
            "eth_syncing": lambda _params, _head: False,
            "eth_blockNumber": lambda _params, head: hex(head),
            "eth_getBlockByNumber": self._block_by_number,
            "eth_getBlockByHash": self._block_by_hash,
            "eth_getLogs": self._logs,
            "eth_getTransactionReceipt": self._receipt,
        }

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [route(RPC, self.call, ("POST",))]

    async def call(self, request: Request) -> Response:
        """Respond to one call, or a batch of them."""
        try:
            asked = self._calls(await request.body())
        except msgspec.MsgspecError as error:
            return answer(_failed(None, {"code": -32700, "message": f"parse error: {error}"}))
        self._chain.mine()
        if not isinstance(asked, list):
            return answer(self._answer(asked))
        if len(asked) > MAX_CALLS:
            return answer(_failed(None, {"code": -32600, "message": f"batch size exceeds {MAX_CALLS}"}))
        return answer([self._answer(call) for call in asked])

    def _answer(self, call: Call) -> dict[str, Any]:
        fault = self._faults.on_call("rpc_error", call.method)
        if fault is not None:
            return _failed(call.id, refusal(fault.error, *self._asked_range(call)))
        method = self._methods.get(call.method)
        if method is None:
            message = f"the method {call.method} does not exist/is not available"
            return _failed(call.id, {"code": -32601, "message": message})
        try:
            return {"jsonrpc": "2.0", "id": call.id, "result": method(call.params, self._head())}
        except CallError as refused:
            return _failed(call.id, refused.error)
        except (ValueError, IndexError, msgspec.ValidationError) as error:
            return _failed(call.id, {"code": -32602, "message": f"invalid argument: {error}"})

    def _head(self) -> int:
        fault = self._faults.on_call("lag")
        return self._chain.head - (fault.depth if fault is not None else 0)

    def _asked_range(self, call: Call) -> tuple[int, int]:
        try:
            wanted = msgspec.convert(call.params[0], LogFilter)
            return self._number(wanted.from_block, self._chain.head), self._number(wanted.to_block, self._chain.head)
        except (CallError, ValueError, IndexError, msgspec.ValidationError):
            return 0, 0

    def _number(self, block: str, head: int) -> int:
        match block:
            case "latest" | "pending":
                return head
            case "finalized":
                return min(self._chain.finalized, head)
            case "earliest":
                return 0
            case "safe":  # as Polygon's nodes do
                raise CallError({"code": -39001, "message": "safe block not found"})
        return int(block, 16)

    # --- Blocks ---

    def _block_by_number(self, params: list[Any], head: int) -> dict[str, Any] | None:
        return self._header(self._chain.block(self._number(params[0], head)), head)

    def _block_by_hash(self, params: list[Any], head: int) -> dict[str, Any] | None:
        return self._header(self._chain.by_hash(_bytes(params[0])), head)

    def _header(self, block: SandboxBlock | None, head: int) -> dict[str, Any] | None:
        if block is None or block.number > head:
            return None
        return {
            "number": hex(block.number),
            "hash": f"0x{block.hash.hex()}",
            "parentHash": f"0x{block.parent.hex()}",
            "timestamp": hex(block.ts_s),
            "transactions": [f"0x{transaction.tx.hex()}" for transaction in block.transactions],
            "logsBloom": EMPTY_BLOOM,
            "miner": NOBODY,
            "difficulty": "0x1",
            "gasLimit": hex(60_000_000),
            "gasUsed": hex(150_000 * len(block.transactions)),
            "baseFeePerGas": hex(30_000_000_000),
            "extraData": "0x",
            "nonce": "0x0000000000000000",
            "size": hex(600 + 1_500 * len(block.transactions)),
            "uncles": [],
            **dict.fromkeys(("mixHash", "receiptsRoot", "sha3Uncles", "stateRoot", "transactionsRoot"), EMPTY_WORD),
        }

    # --- Logs ---

    def _logs(self, params: list[Any], head: int) -> msgspec.Raw:
        wanted = msgspec.convert(params[0], LogFilter)
        finds = wanted.finds()
        if wanted.block_hash is not None:
            block = self._chain.by_hash(_bytes(wanted.block_hash))
            if block is None or block.number > head:
                raise CallError({"code": -32000, "message": "unknown block"})
            first = last = block.number
        else:
            first, last = self._number(wanted.from_block, head), self._number(wanted.to_block, head)
        if first > last:
            raise CallError({"code": -32000, "message": "invalid block range params"})
        limit = self._faults.on_call("range_limit", "eth_getLogs")
        blocks = limit.blocks if limit is not None and limit.blocks is not None else self.max_blocks
        logs = limit.logs if limit is not None and limit.logs is not None else self.max_logs
        if last - first >= blocks:
            raise CallError(refusal(limit.error if limit is not None else "range_too_large", first, last))
        found: list[bytes] = []
        missing = self._faults.on_call("missing_logs")
        if self._chain.pruned(first, min(last, head)):
            raise CallError({"code": 4444, "message": "pruned history unavailable"})
        for block in self._chain.busy(first, min(last, head)):
            of_block = [log.json for log in self._chain.logs(block) if finds(log)]
            if missing is not None:
                of_block = [json for json in of_block if zlib.crc32(json) >= missing.probability * SHARE]
            found += of_block
            if len(found) > logs:
                raise CallError(refusal(limit.error if limit is not None else "too_many_results", first, last))
        return msgspec.Raw(b"[" + b",".join(found) + b"]")

    def _receipt(self, params: list[Any], head: int) -> dict[str, Any] | None:
        tx = _bytes(params[0])
        block = self._chain.of_transaction(tx)
        if block is None or block.number > head:
            return None
        place = next(at for at, transaction in enumerate(block.transactions) if transaction.tx == tx)
        logs = [log.json for log in self._chain.logs(block) if log.tx == tx]
        return {
            "transactionHash": f"0x{tx.hex()}",
            "transactionIndex": hex(place),
            "blockHash": f"0x{block.hash.hex()}",
            "blockNumber": hex(block.number),
            "from": NOBODY,
            "to": EXCHANGE,
            "status": "0x1",
            "type": "0x2",
            "contractAddress": None,
            "cumulativeGasUsed": hex(150_000 * (place + 1)),
            "gasUsed": hex(150_000),
            "effectiveGasPrice": hex(30_000_000_000),
            "logsBloom": EMPTY_BLOOM,
            "logs": msgspec.Raw(b"[" + b",".join(logs) + b"]"),
        }


def _failed(identity: Any, error: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "error": error}


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))
