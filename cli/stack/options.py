"""From what was typed, and the settings, to a plan."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import typer

from cli.stack import sources
from cli.stack.plan import Plan, Source
from cli.stack.ports import Ports, TakenError, choose

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from config.settings import Settings


SIMULATED_DAYS = 14


def plan(
    *,
    simulate: int | None = None,
    tape: Path | None = None,
    live: bool = False,
    speed: float | None = None,
    rate: float | None = None,
    markets: int | None = None,
    port_base: int | None = None,
    workers: int | None = None,
    truth: Path | None = None,
    backfill_days: int | None = None,
    from_settings: bool = False,
) -> Plan:
    """Work out what to run; typer.BadParameter where the options contradict each other."""
    from config import settings

    given = settings.get()
    if sum([simulate is not None, tape is not None, live]) > 1:
        raise typer.BadParameter("--simulate, --tape and --live exclude each other")
    if tape is None and speed is not None:
        raise typer.BadParameter("--speed is for --tape")
    if (tape is not None or live) and (rate is not None or markets is not None):
        raise typer.BadParameter("--rate and --markets are for --simulate")
    source: Source = "exchange" if live else "tape" if tape is not None else "simulated"
    try:
        ports = _ports_of(given) if from_settings and port_base is None else choose(port_base)
    except TakenError as error:
        raise typer.BadParameter(str(error)) from error
    return Plan(
        source=source,
        stored_as=given.source if live else "",
        ports=ports,
        data_dir=given.data_dir.expanduser().resolve(),
        cache_dir=given.cache_dir,
        database_url=given.database_url.get_secret_value() if given.database_url else None,
        host=given.api_host,
        workers=workers or given.api_workers,
        site_host=given.site_host,
        trusted_proxies=given.trusted_proxies,
        log_format=given.log_format,
        seed=1 if simulate is None else simulate,
        tape=tape.resolve() if tape else None,
        speed=speed,
        rate=rate,
        markets=markets,
        truth=truth.resolve() if truth else None,
        backfill_days=_backfill(source, backfill_days, given),
    )


def _backfill(source: Source, asked: int | None, given: Settings) -> int:
    """Say how many days to fill in: those asked for; else a fortnight of a simulation, and what the settings say."""
    if source == "tape":
        if asked:
            raise typer.BadParameter("a tape has the past that was recorded: --backfill is not for --tape")
        return 0
    if asked is not None:
        return asked
    return SIMULATED_DAYS if source == "simulated" else given.backfill_days


def _ports_of(given: Settings) -> Ports:
    """Take the API's and Dagster's ports from the settings, the others beside Dagster's."""
    ports = Ports(
        api=given.api_port,
        sandbox=given.dagster_port + 1,
        dagster=given.dagster_port,
        code=given.dagster_port + 2,
        database=given.dagster_port + 3,
        site=given.site_port,
    )
    if taken := ports.taken():
        whom = ", ".join(f"{port} (for the {name})" for name, port in taken.items())
        raise TakenError(f"somebody listens already on port {whom}; see PRESAGE_API_PORT, _SITE_PORT and _DAGSTER_PORT")
    return ports


@contextlib.contextmanager
def database(url: str | None) -> Iterator[str]:
    """Give the database to work on: the one named, or the one started last on the embedded server.

    The server is started if it is not running.

    An error that the user can act on ends the command with its text alone.
    """
    import psycopg

    from config import settings
    from sql.embedded import Cluster, EmbeddedError

    given = settings.get()
    named = url or (given.database_url.get_secret_value() if given.database_url else None)
    try:
        if named:
            yield named
            return
        data_dir = given.data_dir.expanduser().resolve()
        name = sources.current(data_dir)
        with Cluster(data_dir / "database", cache_dir=given.cache_dir) as cluster:
            cluster.create_database(name)
            yield cluster.url(name)
    except (EmbeddedError, psycopg.Error, ValueError) as error:
        typer.echo(f"presage: {error}", err=True)
        raise typer.Exit(1) from error
