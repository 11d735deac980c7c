"""What is to be run: from the command's options and the settings, decided once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cli.stack import sources

if TYPE_CHECKING:
    from cli.stack.ports import Ports
    from config.logging import Format

Source = Literal["exchange", "tape", "simulated"]
ROOT = Path(__file__).parents[2]  # the checkout: programs are started from here


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One way to run everything."""

    source: Source
    stored_as: str = ""  # how rows of the real exchange are labelled, if otherwise
    ports: Ports
    data_dir: Path
    cache_dir: Path | None = None
    database_url: str | None = None  # None: the embedded one
    host: str = "127.0.0.1"
    workers: int = 2
    site_host: str = "127.0.0.1"
    trusted_proxies: str = ""
    log_format: Format = "json"
    seed: int = 1
    tape: Path | None = None
    speed: float | None = None
    rate: float | None = None
    markets: int | None = None
    backfill_days: int = 0  # of before the first day
    truth: Path | None = None  # where the sandbox writes down all it sends

    @property
    def logs(self) -> Path:
        return self.data_dir / "logs"

    @property
    def label_of_rows(self) -> str:
        """Which source the rows name."""
        return self.stored_as or self.source

    @property
    def database(self) -> str:
        """Name the database that holds this source's data on the embedded server, and nothing of another's."""
        if self.source == "simulated":
            return sources.named("simulated", str(self.seed))
        return (
            sources.named("tape", self.tape.name if self.tape else "")
            if self.source == "tape"
            else sources.named(self.label_of_rows)
        )

    @property
    def key_file(self) -> Path:
        return self.data_dir / "keys" / self.database

    @property
    def dagster_home(self) -> Path:
        return self.data_dir / "dagster" / self.database

    @property
    def workspace(self) -> Path:
        return self.dagster_home / "workspace.yaml"

    @property
    def label(self) -> str:
        """What the data is, in words that leave no doubt."""
        return {
            "simulated": f"simulated (seed {self.seed}): no real market",
            "tape": f"replayed from {self.tape}",
            "exchange": "the real exchange",
        }[self.source]

    def urls(self) -> dict[str, str | None]:
        """Where one can look."""
        host = _reached(self.host)
        return {
            "api": f"http://{host}:{self.ports.api}",
            "stream": f"ws://{host}:{self.ports.api}/stream",
            "dagster": f"http://127.0.0.1:{self.ports.dagster}",
            "site": f"http://{_reached(self.site_host)}:{self.ports.site}",
        }


def _reached(host: str) -> str:
    """Say by which address of this machine one reaches who listens there."""
    return "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104 (compared, not bound)
