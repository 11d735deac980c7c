"""python -m benchmarks.chain.node: a node with precomputed responses, so that it is not what is measured."""

from __future__ import annotations

import random
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

FIRST = 91_000_000
MATCHES = 30  # per block: 90 logs and more, as the exchange has on Polygon
WALLETS, TOKENS = 50_000, 4_000
EXCHANGE = "0xe111180000d2663c0091e4f400237545b87b996b"
FILLED = "0xd543adfd945773f1a62f74f0ee55a5e3b9b1a28262980ba90b1a89f2ea84d8ee"
MATCHED = "0x174b3811690657c217184f89418266767c87e4805d09680c39fc9c031c0cab7c"


class Node:
    """A chain of `blocks` blocks, each with its logs as JSON."""

    def __init__(self, blocks: int) -> None:
        dice = random.Random(1)  # noqa: S311 - test data
        self.start_s = int(time.time()) - 2 * blocks
        self.head = FIRST + blocks - 1
        self._hashes = [dice.randbytes(32).hex() for _ in range(blocks + 1)]
        wallets = [dice.randbytes(20).hex() for _ in range(WALLETS)]
        tokens = [dice.getrandbits(255) for _ in range(TOKENS)]
        self._logs = [self._block(dice, at, wallets, tokens) for at in range(blocks)]

    def answer(self, method: str, params: list[Any]) -> bytes:
        """Return the result of a call, as JSON."""
        if method == "eth_getLogs":
            first, last = int(params[0]["fromBlock"], 16), int(params[0]["toBlock"], 16)
            return b"[" + b",".join(self._logs[max(first - FIRST, 0) : last - FIRST + 1]) + b"]"
        if method == "eth_getBlockByNumber":
            number = self.head if params[0] in {"latest", "finalized"} else int(params[0], 16)
            at = number - FIRST
            return msgspec.json.encode(
                {
                    "number": hex(number),
                    "hash": "0x" + self._hashes[at + 1],
                    "parentHash": "0x" + self._hashes[at],
                    "timestamp": hex(self.start_s + 2 * at),
                }
            )
        return msgspec.json.encode("0x89" if method == "eth_chainId" else hex(self.head))

    def _block(self, dice: random.Random, at: int, wallets: list[str], tokens: list[int]) -> bytes:
        logs: list[str] = []
        tail = (
            f'"blockNumber":"{FIRST + at:#x}","blockHash":"0x{self._hashes[at + 1]}",'
            f'"blockTimestamp":"{self.start_s + 2 * at:#x}","removed":false'
        )

        def say(topics: list[str], words: list[int], tx: str) -> None:
            named, data = '","'.join(topics), "".join(f"{word:064x}" for word in words)
            logs.append(
                f'{{"address":"{EXCHANGE}","topics":["{named}"],"data":"0x{data}","transactionHash":"0x{tx}",'
                f'"transactionIndex":"0x0","logIndex":"{len(logs):#x}",{tail}}}'
            )

        def address(text: str) -> str:
            return f"0x{text:0>64}"

        for _ in range(MATCHES):
            tx, token, price = dice.randbytes(32).hex(), dice.choice(tokens), dice.randrange(10, 990)
            taker, sold = wallets[int(WALLETS * dice.random() ** 3)], 0
            for _ in range(dice.choice([1, 1, 2])):
                maker, shares = wallets[int(WALLETS * dice.random() ** 3)], dice.randrange(1, 10**9) * 1000
                sold += shares
                order = [FILLED, "0x" + dice.randbytes(32).hex(), address(maker), address(taker)]
                say(order, [0, token, shares * price // 1000, shares, 0, 0, 0], tx)
            own = "0x" + dice.randbytes(32).hex()
            say(
                [FILLED, own, address(taker), address(EXCHANGE[2:])],
                [1, token, sold, sold * price // 1000, 1000, 0, 0],
                tx,
            )
            say([MATCHED, own, address(taker)], [1, token, sold, sold * price // 1000], tx)
        return ",".join(logs).encode()


def serve(blocks: int) -> None:
    """Listen on a free port, and print it once ready."""
    node = Node(blocks)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            asked = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
            calls = asked if isinstance(asked, list) else [asked]
            responses = [
                b'{"jsonrpc":"2.0","id":%s,"result":%s}'
                % (msgspec.json.encode(call["id"]), node.answer(call["method"], call.get("params", [])))
                for call in calls
            ]
            body = b"[" + b",".join(responses) + b"]" if isinstance(asked, list) else responses[0]
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing: the caller reads only the port."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
