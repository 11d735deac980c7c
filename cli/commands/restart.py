"""`presage restart`: replace the processes of the API and the site of a running `presage up`."""

from __future__ import annotations

from typing import Annotated

import typer

SERVICES = ("api", "site")  # in this order: the site of the release before works with the new API


def restart(
    services: Annotated[
        list[str] | None, typer.Argument(metavar="[api|site]...", help="What to restart. Default: api, then site.")
    ] = None,
) -> None:
    """Restart the API and the site of a running `presage up` or `presage demo`, without losing a request.

    The next process serves beside the old one until that has answered what it had begun. If it does not get ready, the
    old one serves on, nothing further is restarted, and the exit status is 1.
    """
    import msgspec

    from cli.recording import recording
    from cli.stack import control
    from config import settings
    from sql import migrate

    names = services or SERVICES
    if unknown := [name for name in names if name not in SERVICES]:
        raise typer.BadParameter(f"{unknown[0]} is neither of: {', '.join(SERVICES)}")
    given = settings.get()
    folder = given.data_folder
    try:
        running = msgspec.json.decode((folder / "running.json").read_bytes())
    except FileNotFoundError:
        raise _failed(f"nothing runs on {folder}") from None
    url = given.database_url.get_secret_value() if given.database_url else running["database_url"]
    if migrate.pending(url):
        raise _failed("the database has an older schema than this release: run `presage migrate` first")
    with recording(url):
        for name in names:
            try:
                done, said = control.restart(folder, name)
            except control.NotRunningError as error:
                raise _failed(str(error)) from error
            if not done:
                raise _failed(said)
            typer.echo(said)


def _failed(said: str) -> typer.Exit:
    typer.echo(f"presage: {said}", err=True)
    return typer.Exit(1)
