"""Command line of a sandbox: the arguments that all have, and its run until it is stopped."""

from __future__ import annotations

import argparse
import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from upstream.sandbox.common.faults import read_faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from upstream.sandbox.common.faults import PlannedFault
    from upstream.sandbox.common.server import SandboxServer

GC_THRESHOLDS = 20_000, 20, 20


class SandboxParser(argparse.ArgumentParser):
    """Parser of a sandbox's arguments; a sandbox adds those that are its own."""

    def __init__(self, prog: str, description: str | None, epilog: str, *, port: int, markets: int) -> None:
        super().__init__(
            prog=prog, description=description, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        source = self.add_mutually_exclusive_group()
        source.add_argument(
            "--simulate",
            type=int,
            metavar="SEED",
            help="simulate markets; the same seed gives the same ones (default: 1)",
        )
        source.add_argument("--tape", type=Path, metavar="DIR", help="play a folder of recordings, time shifted to now")
        self.add_argument(
            "--port", type=int, default=port, help="port to listen on; 0 takes a free one (default: %(default)s)"
        )
        self.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        self.add_argument(
            "--rate",
            type=float,
            default=200,
            metavar="N",
            help="simulation: price changes and prints a second (default: %(default)s)",
        )
        self.add_argument(
            "--markets",
            type=int,
            default=markets,
            metavar="N",
            help="simulation: markets at the start (default: %(default)s)",
        )
        self.add_argument("--start-ms", type=int, metavar="MS", help="the exchange's clock at the start (default: now)")
        self.add_argument(
            "--speed",
            type=float,
            default=1.0,
            metavar="X",
            help="tape: playback speed factor; 0 is as fast as possible (default: %(default)s)",
        )
        self.add_argument(
            "--hold", action="store_true", help="play nothing until POST /sandbox/play; recommended with --speed 0"
        )
        self.add_argument("--faults", metavar="FILE|JSON", help="faults to inject, and when")
        self.add_argument(
            "--log",
            type=Path,
            metavar="FILE",
            help="write every event as a line of JSON: the ground truth to compare with",
        )

    def shared(self, given: argparse.Namespace, fault: type[PlannedFault]) -> dict[str, Any]:
        """Return what all sandboxes are made of; exit if the script of faults cannot be read."""
        simulate = 1 if given.simulate is None else given.simulate
        names = ("tape", "port", "host", "rate", "markets", "start_ms", "speed", "hold", "log")
        return {
            **{name: getattr(given, name) for name in names},
            "simulate": simulate if given.tape is None else None,
            "faults": self._script(given.faults, fault),
            "progress": _say,
        }

    def serve(self, make: Callable[[], SandboxServer], kind: str) -> None:
        """Make a sandbox, say where it is, and serve until stopped; exit if it cannot be made."""
        try:
            sandbox = make()
        except ValueError as error:
            self.exit(1, f"{self.prog}: {error}\n")
        sandbox.bind()
        gc.freeze()  # hundreds of thousands of markets: a pause to look at them all would make messages late
        gc.set_threshold(*GC_THRESHOLDS)
        _say(f"{sandbox.source.source} {kind} with {sandbox.status()['markets']} markets at {sandbox.url}")
        sandbox.run()

    def _script(self, given: str | None, fault: type[PlannedFault]) -> list[Any]:
        if given is None:
            return []
        try:
            return read_faults(fault, given if given.lstrip().startswith(("[", "{")) else Path(given).read_bytes())
        except (OSError, msgspec.MsgspecError) as error:
            self.error(f"--faults: {error}")


def _say(line: str) -> None:
    print(line, flush=True)
