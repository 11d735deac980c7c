"""Builds a plan from the command line's options, which `cli/main.py` declares, and from settings."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import typer

from cli import logins
from cli.recording import recording
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
    """Return the plan; raises typer.BadParameter if options contradict each other."""
    from config import settings

    given = settings.get()
    if sum([simulate is not None, tape is not None, live]) > 1:
        raise typer.BadParameter("--simulate, --tape and --live are mutually exclusive")
    if tape is None and speed is not None:
        raise typer.BadParameter("--speed requires --tape")
    if (tape is not None or live) and (rate is not None or markets is not None):
        raise typer.BadParameter("--rate and --markets require --simulate")
    source: Source = "exchange" if live else "tape" if tape is not None else "simulated"
    try:
        ports = _ports_of(given) if from_settings and port_base is None else choose(port_base)
    except TakenError as error:
        raise typer.BadParameter(str(error)) from error
    return Plan(
        source=source,
        stored_as=given.source if live else "",
        ports=ports,
        data_dir=given.data_folder,
        cache_dir=given.cache_dir,
        database_url=given.database_url.get_secret_value() if given.database_url else None,
        logins=logins.given(given),
        host=given.api_host,
        workers=workers or given.api_workers,
        site_host=given.site_host,
        trusted_proxies=given.trusted_proxies,
        dagster_password=given.dagster_password.get_secret_value() if given.dagster_password else None,
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
    """Return the days to back-fill: as requested; otherwise 14 for a simulation, or as in the settings."""
    if source == "tape":
        if asked:
            raise typer.BadParameter("--backfill cannot be used with --tape: a tape has only its recorded history")
        return 0
    if asked is not None:
        return asked
    return SIMULATED_DAYS if source == "simulated" else given.backfill_days


def _ports_of(given: Settings) -> Ports:
    """Return the API's, site's and Dagster's ports from the settings, and the others after Dagster's."""
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
        raise TakenError(f"already in use: port {whom}; see PRESAGE_API_PORT, _SITE_PORT and _DAGSTER_PORT")
    return ports


@contextlib.contextmanager
def database(url: str | None) -> Iterator[str]:
    """Yield the URL of the database to use: the given one, or the one started last on the embedded server.

    The server is started if it is not running. Errors that the user can act on end the command without a traceback.
    """
    import psycopg

    from config import settings
    from sql.embedded import Cluster, EmbeddedError

    given = settings.get()
    named = url or (given.database_url.get_secret_value() if given.database_url else None)
    try:
        if named:
            settings.check_database_url(named)
            with recording(named):
                yield named
            return
        data_dir = given.data_folder
        name = sources.current(data_dir)
        with Cluster(data_dir / "database", cache_dir=given.cache_dir) as cluster:
            cluster.create_database(name)
            with recording(cluster.url(name)):
                yield cluster.url(name)
    except (EmbeddedError, psycopg.Error, ValueError) as error:
        typer.echo(f"presage: {error}", err=True)
        raise typer.Exit(1) from error
