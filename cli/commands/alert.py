"""`presage alert`: whether those who are to be told of trouble can be reached."""

from __future__ import annotations

import time
from typing import Annotated

import typer


def alert(
    text: Annotated[str, typer.Argument(help="What to say.")] = "This is a test: nothing is wrong.",
) -> None:
    """Send a message to everyone whom PRESAGE_ALERT_WEBHOOK_URL and PRESAGE_ALERT_APPRISE_URLS name, as alerts are."""
    from config import settings
    from orchestration.alerts.outbox import message
    from orchestration.alerts.receivers import receivers
    from orchestration.alerts.standing import Note

    ways = receivers(settings.get())
    if not ways:
        typer.echo("nobody to tell: set PRESAGE_ALERT_WEBHOOK_URL or PRESAGE_ALERT_APPRISE_URLS", err=True)
        raise typer.Exit(1)
    told = message([Note("test", "problem", "warn", text, time.time())])
    accepted = {name: send(told) for name, send in ways.items()}
    for name, took in accepted.items():
        typer.echo(f"{name}: {'accepted' if took else 'not accepted, see above'}")
    raise typer.Exit(0 if all(accepted.values()) else 1)
