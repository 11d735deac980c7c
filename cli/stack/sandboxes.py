"""The simulated exchanges of a plan: their commands, and what the other programs are to know of them."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from config import secret_files
from config.exchanges import KALSHI

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cli.stack.plan import Plan

KALSHI_RATE = 50.0  # messages a second, unless --rate says otherwise: two machines' work runs on one here
KALSHI_KEY_ID = "simulated"


class SandboxProgram(NamedTuple):
    """The command that runs a simulated exchange, and where its controls are."""

    name: str
    command: list[str]
    url: str


def of(plan: Plan) -> list[SandboxProgram]:
    """Return the simulated exchanges that a plan needs, or the one that plays a tape; none, of real ones."""
    if plan.source == "exchange":
        return []
    return [_polymarket(plan), *([_kalshi(plan)] if KALSHI.name in plan.exchanges else [])]


def environment(plan: Plan) -> dict[str, str]:
    """Return the environment variables by which the other programs find them."""
    if plan.source == "exchange":
        return {}
    exchange, kalshi = (f"127.0.0.1:{port}" for port in (plan.ports.sandbox, plan.ports.kalshi))
    found = {
        "PRESAGE_EXCHANGES": ",".join(plan.exchanges),  # another one would be the real one, stored as simulated
        "PRESAGE_GAMMA_URL": f"http://{exchange}/gamma",
        "PRESAGE_CLOB_URL": f"http://{exchange}/clob",
        "PRESAGE_DATA_API_URL": f"http://{exchange}/data",
        "PRESAGE_CLOB_SOCKET_URL": f"ws://{exchange}/ws/market",
        "PRESAGE_CHAIN_RPC_URLS": f"http://{exchange}/rpc",
    }
    if KALSHI.name in plan.exchanges:
        found |= {
            "PRESAGE_KALSHI_URL": f"http://{kalshi}/trade-api/v2",
            "PRESAGE_KALSHI_SOCKET_URL": f"ws://{kalshi}/trade-api/ws/v2",
            "PRESAGE_KALSHI_KEY_ID": KALSHI_KEY_ID,
            "PRESAGE_KALSHI_PRIVATE_KEY_FILE": str(_key(plan)),
        }
    return found


def _polymarket(plan: Plan) -> SandboxProgram:
    port = plan.ports.sandbox
    given = {"--speed": plan.speed, "--rate": plan.rate, "--markets": plan.markets, "--log": plan.truth}
    if plan.source == "simulated" and plan.backfill_days:
        given |= {"--past": plan.backfill_days, "--past-until-ms": _first_started_ms(plan)}
    source = ["--tape", str(plan.tape)] if plan.source == "tape" else ["--simulate", str(plan.seed)]
    command = ["-m", "upstream.sandbox", "--port", str(port), *source, *_options(given)]
    return SandboxProgram("sandbox", [sys.executable, *command], f"http://127.0.0.1:{port}/sandbox")


def _kalshi(plan: Plan) -> SandboxProgram:
    port, log = plan.ports.kalshi, plan.truth and plan.truth.with_name(f"{plan.truth.name}.{KALSHI.name}")
    given = {"--rate": plan.rate or KALSHI_RATE, "--markets": plan.markets, "--log": log}
    key = f"{KALSHI_KEY_ID}={_key(plan).with_suffix('.pub')}"
    command = [
        "-m",
        "upstream.sandbox.kalshi",
        "--port",
        str(port),
        "--simulate",
        str(plan.seed),
        *_options(given),
        "--key",
        key,
    ]
    return SandboxProgram("sandbox-kalshi", [sys.executable, *command], f"http://127.0.0.1:{port}/sandbox")


def _options(given: Mapping[str, object]) -> list[str]:
    return [word for option, value in given.items() if value is not None for word in (option, str(value))]


def _first_started_ms(plan: Plan) -> int:
    """Return when the simulation was first started with this data, in Unix milliseconds: its history ends there."""
    file = plan.dagster_home / "simulated_since_ms"
    if not file.exists():
        file.write_text(f"{time.time() * 1000:.0f}")
    return int(file.read_text())


def _key(plan: Plan) -> Path:
    """Return the file of the key that signs requests to the simulated Kalshi; its public half is beside it (`.pub`)."""
    file = plan.data_dir / "keys" / "simulated-kalshi.pem"
    if file.exists() and file.with_suffix(".pub").exists():
        return file
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    secret_files.write(file, private.decode())
    secret_files.write(file.with_suffix(".pub"), public.decode())
    return file
