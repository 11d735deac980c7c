"""The node: Foundry's anvil, which mines only on request, with the emitters in its genesis block."""

from __future__ import annotations

import json
import platform
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import httpx

from tests.chain import contracts
from tests.chain.solidity import MODULES, compiled

GENESIS_S = 1_790_000_000
OPTIONS: dict[str, Any] = {
    "order": "fifo",
    "accounts": 1,
    "threads": 1,
    "base-fee": 0,
    "gas-price": 0,
    "hardfork": "cancun",  # later ones limit a transaction's gas, and so its number of events
    "transaction-block-keeper": 1_000_000,
}
FLAGS = ("--no-mining", "--disable-block-gas-limit", "--no-request-size-limit")
SYSTEMS = {"Linux": "linux", "Darwin": "darwin"}
PROCESSORS = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class RpcError(Exception):
    """The node's error response."""


class Anvil:
    """A node process on a free port; `with Anvil() as node:` stops it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="presage-anvil-")
        folder = Path(self._folder.name)
        (folder / "genesis.json").write_text(json.dumps(_genesis()))
        given = {"init": folder / "genesis.json", "timestamp": GENESIS_S, "chain-id": contracts.CHAIN_ID, "port": 0}
        options = [f"--{name}={value}" for name, value in {**given, **OPTIONS}.items()]
        with (folder / "log").open("w") as log:
            # The binary itself, not its Node wrapper: it can be stopped by its own pid, and starts in 50 ms.
            command = [_binary(), *options, *FLAGS]
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            self.port = self._listening(folder / "log")
        except BaseException:
            self._end()
            raise
        self.url = f"http://127.0.0.1:{self.port}"
        self._client = httpx.Client(base_url=self.url, timeout=30)
        self.account: str = self.call("eth_accounts")[0]

    def call(self, method: str, *params: Any) -> Any:
        """Send one JSON-RPC call."""
        return self.batch([(method, list(params))])[0]

    def batch(self, calls: list[tuple[str, list[Any]]]) -> list[Any]:
        """Send several calls in one request, and return their results in order."""
        question = [{"jsonrpc": "2.0", "id": i, "method": m, "params": p} for i, (m, p) in enumerate(calls)]
        answers = self._client.post("/", json=question).json()
        for (method, _), answer in zip(calls, answers, strict=True):
            if "error" in answer:
                raise RpcError(f"{method}: {answer['error']}")
        return [answer["result"] for answer in answers]

    def close(self) -> None:
        self._client.close()
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _listening(self, log: Path) -> int:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            said = log.read_text()
            assert self._process.poll() is None, f"anvil ended: {said}"
            if "Listening on " in said:
                address = said.split("Listening on ", 1)[1].split()[0]
                return int(address.rsplit(":", 1)[1])
            time.sleep(0.01)
        raise AssertionError(f"anvil does not listen: {log.read_text()}")

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=10)
        self._folder.cleanup()


def _binary() -> Path:
    name = f"anvil-{SYSTEMS[platform.system()]}-{PROCESSORS[platform.machine()]}"
    binary = MODULES / "@foundry-rs" / name / "bin/anvil"
    assert binary.is_file(), f"{binary} is missing: `make setup` (or `npm install`) installs it"
    return binary


def _genesis() -> dict[str, Any]:
    code = {contracts.CALLER.hex(): compiled()["Caller"]["code"]}
    for name in contracts.CONTRACTS:
        code[contracts.address(name).hex()] = compiled()[contracts.emitter(name)]["code"]
    zero = "0x" + "0" * 64
    return {
        "config": {"chainId": contracts.CHAIN_ID},
        "timestamp": hex(GENESIS_S),
        "alloc": {f"0x{where}": {"balance": "0x0", "code": f"0x{runtime}"} for where, runtime in code.items()},
        "gasLimit": hex(10**12),
        "coinbase": "0x" + "0" * 40,
        **dict.fromkeys(("nonce", "difficulty", "number", "gasUsed"), "0x0"),
        **dict.fromkeys(("mixHash", "parentHash"), zero),
        "extraData": "0x",
    }
