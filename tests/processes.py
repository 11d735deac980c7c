"""Programs that a test starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    import subprocess


def terminate(process: subprocess.Popen[Any]) -> None:
    """Terminate the process; kill it after PATIENCE_S, which fails the test."""
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()
