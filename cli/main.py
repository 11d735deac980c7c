"""The `presage` command. Commands import their dependencies when they run, so that `presage --help` is fast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli import recording
from cli.commands import analyst, backup, equivalents, keys, lake, rotate
from cli.commands import set as set_command
from cli.commands.alert import alert
from cli.commands.audit import audit
from cli.commands.doctor import doctor
from cli.commands.export import export
from cli.commands.restart import restart
from cli.failures import Commands

app = typer.Typer(
    name="presage",
    cls=Commands,
    help="Self-hosted data service for prediction markets: recorded completely, served live.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
key_app = typer.Typer(name="key", help="Create, list and change API keys.", no_args_is_help=True)
app.add_typer(key_app)
keys.add(key_app)
set_command.add(app)
backup.add(app)
app.add_typer(analyst.app)
app.add_typer(rotate.app)
app.add_typer(lake.app)
app.add_typer(equivalents.app)
app.command()(doctor)
app.command()(alert)
app.command()(audit)
app.command()(export)
app.command()(restart)

For = Annotated[
    float | None,
    typer.Option("--for", metavar="SECONDS", min=1, help="Stop automatically, this long after everything is up."),
]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the figures as JSON, updated each second.", dir_okay=False),
]
PortBase = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1024,
        max=65500,
        help="API on N, sandbox on N+1, Dagster's UI on N+2, its code server on N+3, database on N+4, "
        "site on N+5, a sandbox Kalshi on N+6. Default: the first seven consecutive free ports from 8080.",
    ),
]
Workers = Annotated[int | None, typer.Option(min=1, help="API processes.")]
Backfill = Annotated[
    int | None,
    typer.Option(
        metavar="DAYS",
        min=0,
        max=3650,
        help="Days of history to back-fill in the background, newest first. 0: none.",
    ),
]
DatabaseUrl = Annotated[
    str | None, typer.Option("--database-url", envvar="DATABASE_URL", help="The database; empty: the embedded one.")
]


def _checked_roles(given: str | None) -> str | None:
    from config import hosts

    try:
        hosts.roles(given or "")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return given


@app.command()
def demo(
    *,
    seconds: For = None,
    json_file: Json = None,
    simulate: Annotated[
        int | None, typer.Option(metavar="SEED", help="Simulate an exchange from this seed. The default, with seed 1.")
    ] = None,
    tape: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Replay recordings of a real exchange.", exists=True, file_okay=False),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Use the real exchange.")] = False,
    speed: Annotated[
        float | None, typer.Option(min=0.01, help="Playback speed of the tape, as a multiple of real time.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Price changes and trades a second that the simulation sends: whole books, best prices come on top.",
        ),
    ] = None,
    markets: Annotated[int | None, typer.Option(min=1, help="Number of simulated markets.")] = None,
    exchanges: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Exchanges to simulate: polymarket (the default), or polymarket,kalshi."),
    ] = None,
    backfill: Backfill = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the data of earlier runs and start over.")] = False,
    port_base: PortBase = None,
    workers: Workers = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Have the sandbox log every event it sends.", hidden=True)
    ] = None,
) -> None:
    """Start everything from scratch and show live data.

    Runs the database, migrations, an exchange (simulated by default), Dagster, the API and the site, and shows a status
    table with a ready API key and example calls. Ctrl-C stops everything. With --for, the exit status is 0 only if
    every stage is fresh at the end.
    """
    from cli.stack import demo as command
    from cli.stack.plan_builder import plan

    made = plan(
        simulate=simulate,
        tape=tape,
        live=live,
        speed=speed,
        rate=rate,
        markets=markets,
        port_base=port_base,
        workers=workers,
        truth=truth,
        backfill_days=backfill,
        exchanges=exchanges,
    )
    raise typer.Exit(command.run(made, seconds=seconds, json_file=json_file, fresh=fresh))


@app.command()
def up(
    *,
    role: Annotated[
        str | None,
        typer.Option(
            metavar="ROLES",
            help="What this host runs, separated by commas: database (the embedded one), dagster, runs, feed, api, "
            "site. Default: PRESAGE_ROLES; without it all but runs and feed, as Dagster runs both on a single machine.",
            callback=_checked_roles,
        ),
    ] = None,
    seconds: For = None,
    json_file: Json = None,
    backfill: Backfill = None,
    port_base: PortBase = None,
    workers: Workers = None,
) -> None:
    """Run everything against the real exchange, in the foreground; with --role a part of it, beside other hosts.

    Processes that die are restarted; SIGTERM and Ctrl-C stop everything in order. Addresses and ports come from the
    settings (.env.example), and DATABASE_URL names the database.
    """
    from cli.stack import demo as command
    from cli.stack.plan_builder import plan
    from config import hosts

    made = plan(
        live=True,
        port_base=port_base,
        workers=workers,
        backfill_days=backfill,
        roles=hosts.roles(role) if role else (),
        from_settings=True,
    )
    raise typer.Exit(command.run(made, seconds=seconds, json_file=json_file, with_key=False))


@app.command()
def migrate(
    *,
    revision: Annotated[str, typer.Argument(help="Target: `head`, a revision, or `base` with --down.")] = "head",
    down: Annotated[bool, typer.Option("--down", help="Downgrade to the revision; `base` drops all data.")] = False,
    with_dagster: Annotated[
        bool, typer.Option("--with-dagster", help="Create Dagster's own database on the same server if it is missing.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Upgrade the database to this release's schema, or downgrade it.

    An upgrade also creates the logins of PRESAGE_PIPELINE_DATABASE_URL, PRESAGE_API_DATABASE_URL and
    PRESAGE_SITE_DATABASE_URL, where these are set.
    """
    from psycopg.conninfo import make_conninfo

    from cli import logins
    from cli.stack.databases import create_beside
    from cli.stack.plan_builder import database
    from cli.stack.plan_database import DAGSTER
    from config import settings
    from sql import migrate as migrations

    with database(database_url) as url:
        if with_dagster:
            create_beside(url, DAGSTER)
        move = migrations.downgrade if down else migrations.upgrade
        move(url, revision, progress=typer.echo)
        if not down:
            dagster = make_conninfo(url, dbname=DAGSTER) if with_dagster else None
            logins.create(url, logins.given(settings.get()), dagster)
    typer.echo("done")


@key_app.command("create")
def key_create(
    email: Annotated[str, typer.Argument(help="The owner's email address.")],
    app_name: Annotated[str, typer.Argument(help="The application's name.")],
    *,
    tier: Annotated[str, typer.Option(help="free, pro or enterprise.")] = "free",
    database_url: DatabaseUrl = None,
) -> None:
    """Create a key. It is printed once, and only its hash is stored."""
    from cli import api_keys
    from cli.stack.plan_builder import database

    with database(database_url) as url:
        typer.echo(api_keys.create(url, email, app_name, tier))


@key_app.command("list")
def key_list(*, database_url: DatabaseUrl = None) -> None:
    """List keys by their prefix, with tier and credits used this month."""
    from cli import api_keys
    from cli.stack.plan_builder import database

    with database(database_url) as url:
        api_keys.show(url)


@app.command()
def replay(
    *,
    since: Annotated[
        str, typer.Option("--from", metavar="WHEN", help="2026-11-20T12:00Z, Unix milliseconds, or an age such as 90m.")
    ],
    until: Annotated[
        str | None, typer.Option("--to", metavar="WHEN", help="End, in the same formats. Default: now.")
    ] = None,
    speed: Annotated[float, typer.Option(min=0, help="Multiple of real time; 0: as fast as possible.")] = 1.0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free port.")] = 8099,
    database_url: DatabaseUrl = None,
) -> None:
    """Replay recorded data as the exchange's market channel, on this machine.

    Point a program written for the exchange at the printed address. Each connection gets the whole replay from its
    start, beginning when it subscribes. Ctrl-C stops the server.
    """
    from cli.commands import replay as command
    from cli.stack.plan_builder import database

    with database(database_url) as url:
        command.run(url, command.span(since, until, speed), port)


def _possible_burst(burst: tuple[float, float] | None) -> tuple[float, float] | None:
    if burst is not None and (burst[0] < 1 or burst[1] <= 0):
        raise typer.BadParameter("TIMES is at least 1, and SECONDS above 0")
    return burst


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Benchmarks to run. Without names: list them.")
    ] = None,
    *,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON.", dir_okay=False)
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Duration of sustained loads.")] = 600.0,
    repetitions: Annotated[int, typer.Option(min=1, help="Runs of each alternative; the median is reported.")] = 5,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rewrite the measured part of docs/performance.md.", dir_okay=False),
    ] = None,
    events: Annotated[int, typer.Option(min=10_000, help="Book events of a day, for `books` and `lake`.")] = 20_000_000,
    rate: Annotated[
        float,
        typer.Option(
            min=1,
            help="Price changes and trades a second that the simulated exchange sends, for `capacity`: whole books and "
            "best prices come on top, and each message is an event.",
        ),
    ] = 4_650.0,
    markets: Annotated[
        int | None,
        typer.Option(
            min=10,
            help="Markets of that exchange, for `capacity` (default 200,000); active ones, for `analysis` (200,000); "
            "all ever, for `lists` (1,500,000); of one of two exchanges, for `equivalents` (20,000).",
        ),
    ] = None,
    live: Annotated[
        int | None, typer.Option(min=100, help="Of these, active ones, for `lists`; of the other, for `equivalents`.")
    ] = None,
    shards: Annotated[
        int,
        typer.Option(
            min=1,
            max=64,
            help="Shards of the live feed, each with leader and standby, for `capacity`.",
        ),
    ] = 1,
    burst: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="TIMES SECONDS",
            callback=_possible_burst,
            help="Begin with so many times the rate for so long, for `capacity`.",
        ),
    ] = None,
    quiet_start: Annotated[
        bool,
        typer.Option("--quiet-start", help="Let the exchange trade only once every run is ready, for `capacity`."),
    ] = False,
    warm_up: Annotated[
        float,
        typer.Option("--warm-up", min=0, help="Seconds of trading before it is measured, for `capacity`."),
    ] = 0.0,
    subscriber: Annotated[
        bool,
        typer.Option(
            "--subscriber",
            help="Let a subscriber receive the whole stream meanwhile, leave and resume, for `capacity`.",
        ),
    ] = False,
    quality_pass: Annotated[
        bool,
        typer.Option(
            "--quality-pass/--no-quality-pass",
            help="Time a quality pass afterwards, for `capacity`: it takes two minutes and more.",
        ),
    ] = True,
    texts: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Texts of the labelled markets, for `equivalents`.", exists=True, file_okay=False
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a target is missed.")] = False,
) -> None:
    """Run benchmarks against named alternatives, alternating in the same run."""
    from rich.console import Console

    from cli.stack.processes.program import StartError

    try:
        from benchmarks import harness, table
    except ModuleNotFoundError as error:
        raise typer.BadParameter("benchmarks are only in a source checkout, not in the image") from error

    console, progress = Console(soft_wrap=True), Console(soft_wrap=True, stderr=True)
    if not names:
        for name, (_, description) in harness.BENCHMARKS.items():
            console.print(f"{name}: {description}")
        return
    if unknown := [name for name in names if name not in harness.BENCHMARKS]:
        raise typer.BadParameter(f"no such benchmark: {', '.join(unknown)}; available: {', '.join(harness.BENCHMARKS)}")
    options = harness.Options(
        seconds=seconds,
        repetitions=repetitions,
        markdown=markdown,
        events=events,
        rate=rate,
        markets=markets,
        live=live,
        shards=shards,
        burst=burst,
        quiet_start=quiet_start,
        warm_up=warm_up,
        subscriber=subscriber,
        quality_pass=quality_pass,
        texts=texts,
    )
    figures = []
    try:
        for figure in harness.run(names, options, lambda line: progress.print(line, style="dim", markup=False)):
            figures.append(figure)  # noqa: PERF402 (completed figures are kept when a later one fails)
    except StartError as error:
        progress.print(str(error), style="red", markup=False)
        raise typer.Exit(1) from error
    finally:
        console.print(table.table(figures))
        if json_file is not None:
            harness.save(figures, json_file)
    if strict and any(figure.met is False for figure in figures):
        raise typer.Exit(1)


@app.command()
def openapi(
    *,
    file: Annotated[Path | None, typer.Argument(help="Output file. Default: standard output.", dir_okay=False)] = None,
) -> None:
    """Print the API's OpenAPI 3.1 document."""
    import msgspec

    from api.openapi.document import encoded

    text = msgspec.json.format(encoded(), indent=2).decode()
    if file is None:
        typer.echo(text)
    else:
        file.write_text(text + "\n")


recording.install(app)

if __name__ == "__main__":
    app()
