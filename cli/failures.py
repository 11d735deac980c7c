"""Errors that end a command with a line for its user instead of a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer._click.core import Context


class Commands(TyperGroup):
    """The group of all commands."""

    def invoke(self, ctx: Context) -> Any:
        """Run a command; if a setting is wrong, print its variable and what is allowed, and exit with 1."""
        try:
            return super().invoke(ctx)
        except ValueError as error:
            if not (lines := wrong_settings(error)):
                raise
            for line in lines:
                typer.echo(f"presage: {line}", err=True)
            raise typer.Exit(1) from error


def wrong_settings(error: ValueError) -> list[str]:
    """Return a line for each wrong setting that an error is about."""
    from pydantic import ValidationError

    from config.settings import variable

    if not isinstance(error, ValidationError) or error.title != "Settings":
        return []
    return [f"{variable(str(each['loc'][0]))}: {each['msg']}" for each in error.errors(include_input=False)]
