"""`presage set` and `presage get`: parameters that can be changed at run time."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.recording import record

DatabaseUrl = Annotated[
    str | None, typer.Option("--database-url", envvar="DATABASE_URL", help="The database; empty: the embedded one.")
]


def add(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("set")(set_)
    app.command("get")(get)


def set_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The parameter; `presage get` lists them.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The new value, or `default` to reset it.")],
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Change a parameter at run time. It takes effect without a restart."""
    from cli.stack.plan_builder import database
    from config import tunables
    from sql.database import connect

    with database(database_url) as url, connect(url) as conn:
        before = tunables.value(conn, name) if name in tunables.TUNABLES else None
        number = tunables.set_(conn, name, value)
        record(conn, subject=name, before=before, now=number)
    typer.echo(f"{name} is {number:,} {tunables.TUNABLES[name].unit} now")


def get(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Print only this value. Default: a table of all.")
    ] = None,
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Show the parameters that `presage set` changes: meaning, unit, range, default and current value."""
    from rich.console import Console
    from rich.table import Table

    from cli.stack.plan_builder import database
    from config import tunables
    from sql.database import connect

    with database(database_url) as url, connect(url, autocommit=True) as conn:
        if name is not None and name not in tunables.TUNABLES:
            raise ValueError(f"there is no parameter {name}; available: {', '.join(sorted(tunables.TUNABLES))}")
        now = tunables.values(conn)
    if name is not None:
        typer.echo(now[name])
        return
    table = Table("name", "meaning", "unit", "from", "to", "default", "now")
    for parameter in tunables.TUNABLES.values():
        limits = (f"{number:,}" for number in (parameter.least, parameter.most, parameter.default, now[parameter.name]))
        table.add_row(parameter.name, parameter.meaning, parameter.unit, *limits)
    Console().print(table)
