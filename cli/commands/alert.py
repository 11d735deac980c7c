"""`presage alert`: send a test alert to the configured receivers."""

from __future__ import annotations

import time
from typing import Annotated

import typer


def alert(
    text: Annotated[str, typer.Argument(help="The message.")] = "This is a test: nothing is wrong.",
) -> None:
    """Send a message to all receivers in PRESAGE_ALERT_WEBHOOK_URL and PRESAGE_ALERT_APPRISE_URLS, like an alert."""
    from config import settings
    from orchestration.alerts.outbox import message
    from orchestration.alerts.receivers import receivers
    from orchestration.alerts.standing import Note

    ways = receivers(settings.get())
    if not ways:
        typer.echo("no receivers: set PRESAGE_ALERT_WEBHOOK_URL or PRESAGE_ALERT_APPRISE_URLS", err=True)
        raise typer.Exit(1)
    alert_message = message([Note("test", "problem", "warn", text, time.time())])
    accepted = {name: send(alert_message) for name, send in ways.items()}
    for name, took in accepted.items():
        typer.echo(f"{name}: {'accepted' if took else 'not accepted, see above'}")
    raise typer.Exit(0 if all(accepted.values()) else 1)
