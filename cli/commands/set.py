"""`presage set` and `presage get`: what an administrator changes while everything runs."""

from __future__ import annotations

from typing import Annotated

import typer

DatabaseUrl = Annotated[
    str | None, typer.Option("--database-url", envvar="DATABASE_URL", help="The database; empty: the embedded one.")
]


def add(app: typer.Typer) -> None:
    """Give the commands to `presage`."""
    app.command("set")(set_)
    app.command("get")(get)


def set_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which; `presage get` lists them.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="What it shall be; `default`: what it is by itself.")],
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Change a parameter while everything runs. It acts at once, without a restart."""
    from cli.stack.options import database
    from config import tunables as parameters
    from sql.database import connect

    with database(database_url) as url, connect(url, autocommit=True) as conn:
        number = parameters.set_(conn, name, value)
    typer.echo(f"{name} is {number:,} {parameters.PARAMETERS[name].unit} now")


def get(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Its value alone; none: a table of all.")] = None,
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Show the parameters that `presage set` changes: meaning, unit, range, default and what they are now."""
    from rich.console import Console
    from rich.table import Table

    from cli.stack.options import database
    from config import tunables as parameters
    from sql.database import connect

    with database(database_url) as url, connect(url, autocommit=True) as conn:
        if name is not None and name not in parameters.PARAMETERS:
            raise ValueError(f"there is no parameter {name}, only {', '.join(sorted(parameters.PARAMETERS))}")
        now = parameters.values(conn)
    if name is not None:
        typer.echo(now[name])
        return
    table = Table("name", "meaning", "unit", "from", "to", "default", "now")
    for parameter in parameters.PARAMETERS.values():
        limits = (f"{number:,}" for number in (parameter.least, parameter.most, parameter.default, now[parameter.name]))
        table.add_row(parameter.name, parameter.meaning, parameter.unit, *limits)
    Console().print(table)
