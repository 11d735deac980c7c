"""A JSON-RPC proxy in front of the node that responds as faulty endpoints do.

It is a real HTTP server: point the code under test at `url`. By default it passes everything on. Faults:

- `lag`: it does not know the newest blocks; logs beyond its head are silently left out, or refused
  (`beyond_head = "refuse"`).
- `finality`: how many blocks `finalized` and `safe` are behind the head (the node's own: 64); `"missing"`: these tags
  are unknown.
- `max_blocks`, `max_logs`: limits of one eth_getLogs; more is refused by `limit_by`, one of `refusals.RANGE`.
- `missing`: share of logs left out of eth_getLogs, always the same ones (`seed` selects others).
- `timestamps = False`: logs have no blockTimestamp, as with older nodes.
- `fail(kind)`: the next responses are one of `refusals.ALL`; by number of times and by method.
- `freeze()`: it keeps the chain of this moment, whatever happens to the node's: before a reorganisation, that makes
  two endpoints that disagree. `thaw()` ends it.
- `clear()`: no faults.

`calls` lists the calls received; `refused` counts faulty responses by kind.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import sys
import threading
import zlib
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from tests.chain import refusals
from tests.chain.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Collection

Rpc = dict[str, Any]
SHARE = 1 << 32


@dataclass
class Failure:
    """A planned fault of the next responses."""

    kind: str
    methods: Collection[str] | None
    times: int | None
    every: int
    asked: int = 0

    def strikes(self, method: str) -> bool:
        if self.times == 0 or (self.methods is not None and method not in self.methods):
            return False
        self.asked += 1
        if self.asked % self.every:
            return False
        if self.times is not None:
            self.times -= 1
        return True


class FaultyRpc:
    """A proxy in front of the node at `url`; `with FaultyRpc(chain.url) as endpoint:` closes it."""

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream).netloc
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._failures: list[Failure] = []
        self._frozen: Frozen | None = None
        self.calls: list[tuple[str, list[Any]]] = []
        self.refused: Counter[str] = Counter()
        self.errors: list[BaseException] = []
        self.clear()
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def clear(self) -> None:
        """Remove all faults; `calls` and `refused` stay."""
        with self._lock:
            self._failures, self._frozen = [], None
            self.lag = 0
            self.beyond_head = "silent"
            self.finality: int | str | None = None
            self.max_blocks: int | None = None
            self.max_logs: int | None = None
            self.limit_by = "too_many_results"
            self.missing = 0.0
            self.seed = 0
            self.timestamps = True
            self.retry_after = "1"

    def fail(self, kind: str, *, times: int | None = 1, methods: Collection[str] | None = None, every: int = 1) -> None:
        """Fail `times` calls (None: from now on) of these methods (None: any), every `every`th of them."""
        assert kind in refusals.ALL, f"{kind} is none of {refusals.ALL}"
        with self._lock:
            self._failures.append(Failure(kind, methods, times, every))

    def freeze(self) -> None:
        """Keep the chain as it is now."""
        view = Frozen(self._ask)
        with self._lock:
            self._frozen = view

    def thaw(self) -> None:
        """Follow the node's chain again."""
        with self._lock:
            self._frozen = None

    def count(self, method: str) -> int:
        """Return how often a method was called."""
        return sum(1 for called, _ in self.calls if called == method)

    def close(self) -> None:
        self._server.closing = True
        self._server.shutdown()
        self._server.server_close()  # waits for responses in progress
        self._thread.join(timeout=30)
        for connection in self._idle:
            connection.close()
        assert not self.errors, self.errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Respond to one HTTP request, of one call or a batch."""
        asked = json.loads(body)
        calls: list[Rpc] = asked if isinstance(asked, list) else [asked]
        with self._lock:
            self.calls += [(call["method"], call.get("params", [])) for call in calls]
            strikes = [self._strike(call["method"]) for call in calls]
        answers = self._answers(calls, strikes)
        told = json.dumps(answers if isinstance(asked, list) else answers[0]).encode()
        whole = next((kind for kind in strikes if kind in refusals.HTTP), None)
        if whole is not None:
            refusals.HTTP[whole](handler, told, self.retry_after)
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(told)))
        handler.end_headers()
        handler.wfile.write(told)

    def _strike(self, method: str) -> str | None:
        for failure in self._failures:
            if failure.strikes(method):
                self.refused[failure.kind] += 1
                return failure.kind
        return None

    def _answers(self, calls: list[Rpc], strikes: list[str | None]) -> list[Rpc]:
        head = finalized = 0
        if self.lag or self.finality is not None:
            newest, final = self._known([("eth_blockNumber", []), ("eth_getBlockByNumber", ["finalized", False])])
            head = max(int(newest, 16) - self.lag, 0)
            depth = self.finality if isinstance(self.finality, int) else None
            finalized = min(int(final["number"], 16), head) if depth is None else max(head - depth, 0)
        plans: list[tuple[str, list[Any]] | Rpc] = []
        for call, kind in zip(calls, strikes, strict=True):
            if kind in refusals.RPC:
                plans.append(refusals.RPC[kind](call))
            else:
                plans.append(self._plan(call, head, finalized))
        results = iter(self._known([plan for plan in plans if isinstance(plan, tuple)], raw=True))
        answers = []
        for call, plan in zip(calls, plans, strict=True):
            told = {"error": plan} if isinstance(plan, dict) else next(results)
            if "result" in told:
                told = self._doctored(call, told["result"], head)
            answers.append({"jsonrpc": "2.0", "id": call.get("id"), **told})
        return answers

    def _plan(self, call: Rpc, head: int, finalized: int) -> tuple[str, list[Any]] | Rpc:
        """Return the call to send to the node, or the error to respond with instead."""
        method, params = call["method"], list(call.get("params", []))
        limited = self.lag or isinstance(self.finality, int)
        if method == "eth_getBlockByNumber":
            if params[0] in {"finalized", "safe"} and self.finality == "missing":
                return {"code": -32000, "message": f"{params[0]} block not found"}
            if limited and params[0] in {"finalized", "safe"}:
                params[0] = hex(finalized)
            elif limited and params[0] in {"latest", "pending"}:
                params[0] = hex(head)
        if method == "eth_getLogs" and "blockHash" not in params[0]:
            return self._plan_logs(call, head)
        return method, params

    def _plan_logs(self, call: Rpc, head: int) -> tuple[str, list[Any]] | Rpc:
        wanted = dict(call["params"][0])
        first, last = wanted.get("fromBlock", "latest"), wanted.get("toBlock", "latest")
        if self.lag:
            first, last = (hex(head) if end == "latest" else end for end in (first, last))
            if int(last, 16) > head:
                if self.beyond_head == "refuse":
                    return {"code": -32000, "message": "block range extends beyond current head block"}
                # `_within` removes logs of this range outside the requested one.
                first, last = hex(min(int(first, 16), head)), hex(head)
        if self.max_blocks is not None and int(last, 16) - int(first, 16) >= self.max_blocks:
            return self._over_limit(call)
        return "eth_getLogs", [{**wanted, "fromBlock": first, "toBlock": last}]

    def _doctored(self, call: Rpc, result: Any, head: int) -> Rpc:
        match call["method"]:
            case "eth_blockNumber" if self.lag:
                result = hex(head)
            case "eth_getBlockByNumber" | "eth_getBlockByHash" if self.lag and result:
                result = result if int(result["number"], 16) <= head else None
            case "eth_getTransactionReceipt" if self.lag and result:
                result = result if int(result["blockNumber"], 16) <= head else None
            case "eth_getLogs":
                if self.lag:
                    result = _within(result, call["params"][0], head)
                if self.max_logs is not None and len(result) > self.max_logs:
                    return {"error": self._over_limit(call)}
                result = [self._log(log) for log in result if not self._lost(log)]
        return {"result": result}

    def _over_limit(self, call: Rpc) -> Rpc:
        self.refused[self.limit_by] += 1
        return refusals.RPC[self.limit_by](call)

    def _log(self, log: Rpc) -> Rpc:
        return log if self.timestamps else {name: value for name, value in log.items() if name != "blockTimestamp"}

    def _lost(self, log: Rpc) -> bool:
        if not self.missing:
            return False
        name = f"{self.seed}{log['transactionHash']}{log['logIndex']}".encode()
        lost = zlib.crc32(name) < self.missing * SHARE
        self.refused["missing"] += lost
        return lost

    def _known(self, calls: list[tuple[str, list[Any]]], *, raw: bool = False) -> list[Any]:
        frozen = self._frozen
        if frozen is None:
            return self._ask(calls, raw=raw)
        answers = []
        for method, params in calls:
            if method == "eth_chainId":
                answers += self._ask([(method, params)])
            else:
                answers.append(frozen.answer(method, params))
        return [{"result": answer} for answer in answers] if raw else answers

    def _ask(self, calls: list[tuple[str, list[Any]]], *, raw: bool = False) -> list[Any]:
        if not calls:
            return []
        with self._lock:
            connection = self._idle.pop() if self._idle else http.client.HTTPConnection(self._upstream, timeout=30)
        question = [{"jsonrpc": "2.0", "id": i, "method": m, "params": p} for i, (m, p) in enumerate(calls)]
        connection.request("POST", "/", json.dumps(question), {"Content-Type": "application/json"})
        answers = json.loads(connection.getresponse().read())
        with self._lock:
            self._idle.append(connection)
        told = [{name: answer[name] for name in ("result", "error") if name in answer} for answer in answers]
        return told if raw else [answer["result"] for answer in told]


def _within(logs: list[Rpc], wanted: Rpc, head: int) -> list[Rpc]:
    """Return the logs of requested and known blocks."""
    start = wanted.get("fromBlock", "0x0")
    first = int(start, 16) if start.startswith("0x") else 0
    return [log for log in logs if first <= int(log["blockNumber"], 16) <= head]


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # closing waits for them
    closing = False

    def __init__(self, faulty_rpc: FaultyRpc) -> None:
        self.faulty_rpc = faulty_rpc
        self.open: set[Any] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_close(self) -> None:
        for connection in list(self.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        super().server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, *_: Any) -> None:
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):  # disconnecting clients are expected
            self.faulty_rpc.errors.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(size := int(self.headers["Content-Length"]))
        if len(body) == size:  # less of it when the server closes, or the client disconnects, meanwhile
            self.server.faulty_rpc.answer(self, body)
        else:
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Log nothing: the tests' output is for failures."""
