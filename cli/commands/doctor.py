"""`presage doctor`: check the installation once and report problems with remedies."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cli.diagnosis import Finding

if TYPE_CHECKING:
    from rich.table import Table

    from config.settings import Settings


def diagnose(settings: Settings, *, live: bool = False) -> list[Finding]:
    """Check machine, packages and database, and the exchange if `live`; return the findings."""
    from cli.diagnosis import backups, chain, database, exchange, host

    findings = [host.python(), host.packages(), host.machine(), *host.disk(settings), *host.ports(settings)]
    findings += [host.alerts(settings), *host.exposure(settings)]
    findings += backups.configuration(settings)
    findings += database.database(settings)
    findings += chain.configuration(settings)
    if live:
        findings += exchange.exchange(settings)
        findings += chain.endpoints(settings)
    return findings


def table(findings: list[Finding]) -> Table:
    """Return the findings as a table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    colours = {"ok": "green", "warn": "yellow", "fail": "bold red"}
    shown = Table(box=box.SIMPLE, pad_edge=False)
    for heading in ("", "check", "finding"):
        shown.add_column(heading, overflow="fold")
    for finding in findings:
        text = Text(finding.found)
        if finding.remedy:
            text.append(f"\n→ {finding.remedy}", style="italic")
        shown.add_row(Text(finding.status, style=colours[finding.status]), finding.topic, text)
    return shown


def doctor(
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Also check whether the exchange and the RPC endpoints are reachable.")
    ] = False,
) -> None:
    """Check machine, packages and database, and report problems with remedies. Exits with 1 if a check fails."""
    from pydantic import ValidationError
    from rich.console import Console

    from config import settings

    console = Console(soft_wrap=not sys.stdout.isatty())
    try:
        findings = diagnose(settings.get(), live=live)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        findings = [Finding("settings", "fail", wrong, "see .env.example for what each setting may be")]
    console.print(table(findings))
    failed = sum(finding.status == "fail" for finding in findings)
    warned = sum(finding.status == "warn" for finding in findings)
    console.print(f"{len(findings)} findings: {failed} failed, {warned} warnings")
    raise typer.Exit(1 if failed else 0)
