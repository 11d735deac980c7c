"""The `presage` command. What a command needs is imported when it runs, so that `presage --help` answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.commands import analyst, backup, keys
from cli.commands import set as parameters
from cli.commands.alert import alert
from cli.commands.doctor import doctor
from cli.commands.export import export

app = typer.Typer(
    name="presage",
    help="Self-hosted data service for prediction markets: recorded completely, served live.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
key_app = typer.Typer(name="key", help="Make, list and change API keys.", no_args_is_help=True)
app.add_typer(key_app)
keys.add(key_app)
parameters.add(app)
backup.add(app)
app.add_typer(analyst.app)
app.command()(doctor)
app.command()(alert)
app.command()(export)

For = Annotated[
    float | None,
    typer.Option("--for", metavar="SECONDS", min=1, help="End by itself, that long after everything is up."),
]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the figures as JSON, anew each second.", dir_okay=False),
]
PortBase = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1024,
        max=65500,
        help="API on N, sandbox on N+1, Dagster's UI on N+2, its code server on N+3, database on N+4, "
        "site on N+5. Without it: the first six in a row that are free, from 8080 on.",
    ),
]
Workers = Annotated[int | None, typer.Option(min=1, help="API processes.")]
Backfill = Annotated[
    int | None,
    typer.Option(
        metavar="DAYS",
        min=0,
        max=3650,
        help="Fill in so many days of before the first, the newest first, in the background. 0: none.",
    ),
]
DatabaseUrl = Annotated[
    str | None, typer.Option("--database-url", envvar="DATABASE_URL", help="The database; empty: the embedded one.")
]


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
    live: Annotated[bool, typer.Option("--live", help="Listen to the real exchange.")] = False,
    speed: Annotated[
        float | None, typer.Option(min=0.01, help="How many times faster than real time the tape runs.")
    ] = None,
    rate: Annotated[float | None, typer.Option(min=0.1, help="Messages a second that the simulation sends.")] = None,
    markets: Annotated[int | None, typer.Option(min=1, help="Markets that the simulation has.")] = None,
    backfill: Backfill = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what earlier runs kept, and start over.")] = False,
    port_base: PortBase = None,
    workers: Workers = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Have the sandbox write down every event it sends.", hidden=True)
    ] = None,
) -> None:
    """Start everything from nothing, and show live data flowing.

    Database, migrations, an exchange (simulated unless told otherwise), Dagster and the API; a status table with a
    ready API key and calls to try. Ctrl-C ends all of it. With --for, the exit status is 0 only if every stage is
    fresh at the end.
    """
    from cli.stack import demo as command
    from cli.stack.options import plan

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
    )
    raise typer.Exit(command.run(made, seconds=seconds, json_file=json_file, fresh=fresh))


@app.command()
def up(
    *,
    seconds: For = None,
    json_file: Json = None,
    backfill: Backfill = None,
    port_base: PortBase = None,
    workers: Workers = None,
) -> None:
    """Run everything against the real exchange, in the foreground.

    What dies is started again; SIGTERM and Ctrl-C end all of it in order. Addresses and ports come from the settings
    (.env.example), and DATABASE_URL names the database.
    """
    from cli.stack import demo as command
    from cli.stack.options import plan

    made = plan(live=True, port_base=port_base, workers=workers, backfill_days=backfill, from_settings=True)
    raise typer.Exit(command.run(made, seconds=seconds, json_file=json_file, with_key=False))


@app.command()
def migrate(
    *,
    revision: Annotated[str, typer.Argument(help="Where to: `head`, a revision, or `base` with --down.")] = "head",
    down: Annotated[bool, typer.Option("--down", help="Go back to the revision; `base` drops all data.")] = False,
    with_dagster: Annotated[
        bool, typer.Option("--with-dagster", help="Make Dagster's own database beside it, if it is missing.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Bring the database to this release's schema, or back."""
    from cli.stack.options import database
    from cli.stack.stack import create_beside
    from sql import migrate as migrations

    with database(database_url) as url:
        if with_dagster:
            create_beside(url, "dagster")
        move = migrations.downgrade if down else migrations.upgrade
        move(url, revision, progress=typer.echo)
    typer.echo("done")


@key_app.command("create")
def key_create(
    email: Annotated[str, typer.Argument(help="Whose key it is.")],
    app_name: Annotated[str, typer.Argument(help="What it is for.")],
    *,
    tier: Annotated[str, typer.Option(help="free, pro or enterprise.")] = "free",
    database_url: DatabaseUrl = None,
) -> None:
    """Make a key. It is printed once, and only its digest is stored."""
    from cli import api_keys as key
    from cli.stack.options import database

    with database(database_url) as url:
        typer.echo(key.create(url, email, app_name, tier))


@key_app.command("list")
def key_list(*, database_url: DatabaseUrl = None) -> None:
    """List keys by their prefix, with tier and credits used this month."""
    from cli import api_keys as key
    from cli.stack.options import database

    with database(database_url) as url:
        key.show(url)


@app.command()
def replay(
    *,
    since: Annotated[
        str, typer.Option("--from", metavar="WHEN", help="2026-11-20T12:00Z, Unix milliseconds, or so long ago: 90m.")
    ],
    until: Annotated[str | None, typer.Option("--to", metavar="WHEN", help="Likewise; now, if not given.")] = None,
    speed: Annotated[float, typer.Option(min=0, help="Times as fast as it happened; 0: as fast as can be.")] = 1.0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0: any that is free.")] = 8099,
    database_url: DatabaseUrl = None,
) -> None:
    """Play the past in the exchange's own protocol: its market channel, on this machine.

    Point a program that was written for the exchange at the address that is printed. Each connection is played all of
    it, from the moment at which it subscribes. Ctrl-C ends it.
    """
    from cli.commands import replay as command
    from cli.stack.options import database

    with database(database_url) as url:
        command.run(url, command.span(since, until, speed), port)


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Which; none: list them.")] = None,
    *,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON.", dir_okay=False)
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Length of a sustained load.")] = 600.0,
    repetitions: Annotated[int, typer.Option(min=1, help="Turns of each rival; the median counts.")] = 5,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the measured part of docs/performance.md anew.", dir_okay=False),
    ] = None,
    events: Annotated[int, typer.Option(min=10_000, help="Book events of a day, for `books`.")] = 20_000_000,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a target is missed.")] = False,
) -> None:
    """Measure beside named rivals, in the same run and taking turns."""
    from rich.console import Console

    try:
        from benchmarks import harness, table
    except ModuleNotFoundError as error:
        raise typer.BadParameter("benchmarks are in a checkout only: the image leaves them out") from error

    console = Console(soft_wrap=True)
    if not names:
        for name, (_, description) in harness.BENCHMARKS.items():
            console.print(f"{name}: {description}")
        return
    if unknown := [name for name in names if name not in harness.BENCHMARKS]:
        raise typer.BadParameter(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(harness.BENCHMARKS)}")
    options = harness.Options(seconds=seconds, repetitions=repetitions, markdown=markdown, events=events)
    figures = []
    try:
        for figure in harness.run(names, options, lambda line: console.print(line, style="dim")):
            figures.append(figure)  # noqa: PERF402 (what was measured is kept when something fails)
    finally:
        console.print(table.table(figures))
        if json_file is not None:
            harness.save(figures, json_file)
    if strict and any(figure.met is False for figure in figures):
        raise typer.Exit(1)


@app.command()
def openapi(
    *,
    file: Annotated[
        Path | None, typer.Argument(help="Where to; the standard output if not given.", dir_okay=False)
    ] = None,
) -> None:
    """Print the API's OpenAPI 3.1 document."""
    import msgspec

    from api.openapi.document import encoded

    text = msgspec.json.format(encoded(), indent=2).decode()
    if file is None:
        typer.echo(text)
    else:
        file.write_text(text + "\n")


if __name__ == "__main__":
    app()
