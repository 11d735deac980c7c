"""The plan of what to run, decided once from options and settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cli.stack import sources
from config.exchanges import DEFAULT
from config.hosts import ONE_MACHINE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cli.stack.ports import Ports
    from config.hosts import Role
    from config.logging import Format

Source = Literal["exchange", "tape", "simulated"]
ROOT = Path(__file__).parents[2]  # the checkout: programs are started from here


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The parameters of one run."""

    source: Source
    stored_as: str = ""  # how rows of the real exchange are labelled, if otherwise
    ports: Ports
    data_dir: Path
    roles: Sequence[Role] = ONE_MACHINE
    cache_dir: Path | None = None
    database_url: str | None = None  # None: the embedded one
    logins: Mapping[str, str] = field(default_factory=dict, repr=False)  # URLs by role; others: the owner's
    host: str = "127.0.0.1"
    workers: int = 2
    site_host: str = "127.0.0.1"
    trusted_proxies: str = ""
    dagster_password: str | None = None  # None: one is generated
    log_format: Format = "json"
    exchanges: Sequence[str] = (DEFAULT.name,)  # that are simulated
    seed: int = 1
    tape: Path | None = None
    speed: float | None = None
    rate: float | None = None
    markets: int | None = None
    backfill_days: int = 0  # history before the first day
    truth: Path | None = None  # where the sandbox logs all it sends

    @property
    def embedded(self) -> bool:
        """Return whether the embedded database is used."""
        return self.database_url is None and "database" in self.roles

    @property
    def migrates(self) -> bool:
        """Return whether this host brings the database to this release's schema; others wait for that."""
        return self.embedded or "dagster" in self.roles

    @property
    def logs(self) -> Path:
        """Return the folder of the log files."""
        return self.data_dir / "logs"

    @property
    def label_of_rows(self) -> str:
        """Return the source label that rows are stored with."""
        return self.stored_as or self.source

    @property
    def database(self) -> str:
        """Return the name of this source's own database on the embedded server."""
        if self.source == "simulated":
            return sources.named("simulated", str(self.seed))
        return (
            sources.named("tape", self.tape.name if self.tape else "")
            if self.source == "tape"
            else sources.named(self.label_of_rows)
        )

    @property
    def key_file(self) -> Path:
        """Return the file of the demo's API key."""
        return self.data_dir / "keys" / self.database

    @property
    def dagster_home(self) -> Path:
        """Return DAGSTER_HOME."""
        return self.data_dir / "dagster" / self.database

    @property
    def password_file(self) -> Path:
        """Return the file with the generated password of Dagster's UI."""
        return self.data_dir / "dagster.password"

    @property
    def workspace(self) -> Path:
        """Return Dagster's workspace file."""
        return self.dagster_home / "workspace.yaml"

    @property
    def label(self) -> str:
        """Return an unambiguous description of the data's source."""
        return {
            "simulated": f"simulated (seed {self.seed}): no real market",
            "tape": f"replayed from {self.tape}",
            "exchange": "the real exchange",
        }[self.source]

    def urls(self) -> dict[str, str | None]:
        """Return the services' URLs; None for one that another host runs."""
        host = _local_address(self.host)
        urls: dict[str, tuple[Role, str]] = {
            "api": ("api", f"http://{host}:{self.ports.api}"),
            "stream": ("api", f"ws://{host}:{self.ports.api}/stream"),
            "dagster": ("dagster", f"http://127.0.0.1:{self.ports.dagster}"),
            "site": ("site", f"http://{_local_address(self.site_host)}:{self.ports.site}"),
        }
        return {name: url if role in self.roles else None for name, (role, url) in urls.items()}


def _local_address(host: str) -> str:
    """Return the local address of a service that listens on `host`."""
    return "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104 (compared, not bound)
