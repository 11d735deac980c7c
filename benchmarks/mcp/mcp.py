"""MCP benchmark: tool calls beside fastmcp's server from the same document: calls per second, and CPU time per call."""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.api.load import LoadClient, cpu_s, press, request
from benchmarks.figures import Figure, Target, figure
from benchmarks.harness import interleaved
from cli.stack.plan import ROOT
from cli.stack.ports import choose
from cli.stack.processes.program import Program
from cli.stack.processes.supervisor import Supervisor
from cli.stack.readiness import listens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.harness import Options

RIVAL = "FastMCP.from_openapi"
WARM_UP_S, TURN_S, CLIENTS, LISTS = 0.5, 4.0, 8, 50
MODERN = "2026-07-28"
ERAS = {True: MODERN, False: "with handshake"}
TOOLS = {"market_price": {"id": "will-it-rain"}, "market_trades": {"id": "will-it-rain", "limit": 100}}


def asked(method: str, *, modern: bool, **params: Any) -> bytes:
    """Return a message of either protocol era."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers["X-API-Key"] = "psg_bench"
    if modern:
        meta = {"protocolVersion": MODERN, "clientInfo": {"name": "bench", "version": "1"}, "clientCapabilities": {}}
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}
        headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        headers |= {"Mcp-Name": params["name"]} if "name" in params else {}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return request("POST", "/api/mcp", headers, body)


class Server:
    """One of the two servers, and its calls per second."""

    def __init__(self, name: str, port: int, folder: Path) -> None:
        self.port, self.rates = port, [0.0]
        how = ("--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning")
        where = ("--host", "127.0.0.1", "--port", str(port))
        self.program = Program(
            name,
            [sys.executable, "-m", "uvicorn", "--factory", f"benchmarks.mcp.apps:{name}", *where, *how],
            folder / f"{name}.log",
            directory=ROOT,
            is_ready=lambda: listens(port),
        )

    def cost(self, message: bytes) -> float:
        """Send calls at full load; return the CPU microseconds per call."""
        assert self.program.pid is not None
        press(self.port, [message], clients=CLIENTS, seconds=WARM_UP_S)
        before = cpu_s([self.program.pid])
        answered = press(self.port, [message], clients=CLIENTS, seconds=TURN_S)
        self.rates.append(answered / TURN_S)
        return (cpu_s([self.program.pid]) - before) / answered * 1e6


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure both servers in turns; the API behind them responds at once."""
    with (
        tempfile.TemporaryDirectory(prefix="presage-bench-") as folder,
        Supervisor(report, restart=False) as supervisor,
    ):
        ports = choose(None)
        ours, rival = Server("ours", ports.api, Path(folder)), Server("rival", ports.dagster, Path(folder))
        supervisor.start(ours.program, rival.program)
        supervisor.wait("ours", "rival")
        for (tool, arguments), modern in itertools.product(TOOLS.items(), (True, False)):
            message = asked("tools/call", modern=modern, name=tool, arguments=arguments)
            name = f"MCP call of {tool}, {ERAS[modern]}"
            both = {"ours": partial(ours.cost, message), RIVAL: partial(rival.cost, message)}
            ours.rates, rival.rates = [], []
            cpu = interleaved(both, options.repetitions, report)
            yield figure(f"{name}: CPU", cpu["ours"], "µs", rival=(RIVAL, cpu[RIVAL]), target=Target("ratio", "<=", 1))
            rates = [statistics.median(server.rates) for server in (ours, rival)]
            yield figure(name, rates[0], "calls/s", rival=(RIVAL, rates[1]), target=Target("value", ">=", 500))
        client = LoadClient(ours.port)
        for modern, era in ERAS.items():
            took = [client.ask(asked("tools/list", modern=modern)) for _ in range(LISTS)]
            median = statistics.median(each.seconds for each in took) * 1e3
            size = {"bytes": float(took[0].size)}
            yield figure(f"MCP list of tools, {era}: p50", median, "ms", target=Target("value", "<", 50), detail=size)
        client.close()
