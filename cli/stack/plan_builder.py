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
from config import settings
from config.exchanges import DEFAULT, EXCHANGES, KALSHI
from config.hosts import ONE_MACHINE, Role
from config.setting_types import check_database_url
from sql.roles.rights import API, PIPELINE, SITE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from config.settings import Settings


SIMULATED_DAYS = 14
LOGINS: dict[Role, str] = {"runs": PIPELINE, "feed": PIPELINE, "api": API, "site": SITE}
"""Which database login a role's programs have; Dagster's host is the owner as well."""


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
    exchanges: str | None = None,
    roles: Sequence[Role] = (),
    from_settings: bool = False,
) -> Plan:
    """Return the plan; raises typer.BadParameter if options contradict each other."""
    given = settings.get()
    if sum([simulate is not None, tape is not None, live]) > 1:
        raise typer.BadParameter("--simulate, --tape and --live are mutually exclusive")
    if tape is None and speed is not None:
        raise typer.BadParameter("--speed requires --tape")
    if (tape is not None or live) and (rate is not None or markets is not None):
        raise typer.BadParameter("--rate and --markets require --simulate")
    if exchanges is not None and (tape is not None or live):
        raise typer.BadParameter("--exchanges requires --simulate; of real ones PRESAGE_EXCHANGES says which are read")
    source: Source = "exchange" if live else "tape" if tape is not None else "simulated"
    wanted = _roles(roles or given.host_roles, given) if from_settings else ONE_MACHINE
    simulated = [DEFAULT.name] if exchanges is None else _simulated(exchanges)
    unneeded = () if KALSHI.name in simulated else ("kalshi",)
    try:
        chosen = from_settings and port_base is None
        ports = _ports_of(given, wanted) if chosen else choose(port_base, unneeded=unneeded)
    except TakenError as error:
        raise typer.BadParameter(str(error)) from error
    return Plan(
        source=source,
        stored_as=given.source if live else "",
        ports=ports,
        data_dir=given.data_folder,
        roles=wanted,
        cache_dir=given.cache_dir,
        database_url=given.database_url.get_secret_value() if given.database_url else None,
        logins=logins.given(given),
        host=given.api_host,
        workers=workers or given.api_workers,
        site_host=given.site_host,
        trusted_proxies=given.trusted_proxies,
        dagster_password=given.dagster_password.get_secret_value() if given.dagster_password else None,
        log_format=given.log_format,
        exchanges=simulated,
        seed=1 if simulate is None else simulate,
        tape=tape.resolve() if tape else None,
        speed=speed,
        rate=rate,
        markets=markets,
        truth=truth.resolve() if truth else None,
        backfill_days=_backfill(source, backfill_days, given),
    )


def _simulated(given: str) -> list[str]:
    """Return the exchanges to simulate, from names separated by commas."""
    names = [name.strip() for name in given.split(",")]
    if DEFAULT.name not in names or len(set(names)) < len(names) or not set(names) <= set(EXCHANGES):
        raise typer.BadParameter(f"--exchanges: {given!r} is not polymarket, alone or with kalshi")
    return names


def _roles(roles: Sequence[Role], given: Settings) -> Sequence[Role]:
    """Return the roles, if the settings have what they need."""
    if given.database_url is not None and "database" in roles and roles != ONE_MACHINE:
        raise typer.BadParameter("the role database is the embedded one, and DATABASE_URL names another: leave one out")
    known = logins.given(given)
    for role in roles if given.database_url is None and "database" not in roles else ():
        login = LOGINS.get(role)
        if login is None or login not in known:
            name = settings.variable(f"{'pipeline' if login == PIPELINE else role}_database_url")
            of_its_own = f" or {name}" if login else ""
            raise typer.BadParameter(f"the role {role} needs a database of another host: set DATABASE_URL{of_its_own}")
    if "site" in roles and "api" not in roles and given.site_token is None:
        raise typer.BadParameter(
            "the site asks an API of another host for keys: set PRESAGE_SITE_TOKEN to the same on both, "
            "and PRESAGE_API_URL to the API's address"
        )
    return roles


def _backfill(source: Source, asked: int | None, given: Settings) -> int:
    """Return the days to back-fill: as requested; otherwise 14 for a simulation, or as in the settings."""
    if source == "tape":
        if asked:
            raise typer.BadParameter("--backfill cannot be used with --tape: a tape has only its recorded history")
        return 0
    if asked is not None:
        return asked
    return SIMULATED_DAYS if source == "simulated" else given.backfill_days


def _ports_of(given: Settings, roles: Sequence[Role]) -> Ports:
    """Return the API's, site's and Dagster's ports from the settings, and the others after Dagster's.

    Those that these roles need must be free.
    """
    ports = Ports(
        api=given.api_port,
        sandbox=given.dagster_port + 1,
        dagster=given.dagster_port,
        code=given.dagster_port + 2,
        database=given.dagster_port + 3,
        site=given.site_port,
        kalshi=given.dagster_port + 4,
    )
    needed = {name for role in roles for name in (("dagster", "code") if role == "dagster" else (role,))}
    if taken := {name: port for name, port in ports.taken().items() if name in needed}:
        whom = ", ".join(f"{port} (for the {name})" for name, port in taken.items())
        raise TakenError(f"already in use: port {whom}; see PRESAGE_API_PORT, _SITE_PORT and _DAGSTER_PORT")
    return ports


@contextlib.contextmanager
def database(url: str | None) -> Iterator[str]:
    """Yield the URL of the database to use: the given one, or the one started last on the embedded server.

    The server is started if it is not running. Errors that the user can act on end the command without a traceback.
    """
    import psycopg

    from sql.embedded import Cluster, EmbeddedError

    given = settings.get()
    named = url or (given.database_url.get_secret_value() if given.database_url else None)
    try:
        if named:
            check_database_url(named)
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
