"""`presage equivalents`: verdicts on markets of two exchanges, and an operator's in their place, on the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.keys import DatabaseUrl  # noqa: TC001 (typer reads annotations)
from cli.recording import record

if TYPE_CHECKING:
    import psycopg

app = typer.Typer(
    name="equivalents", no_args_is_help=True, help="Markets of two exchanges that may ask the same question."
)
VERDICTS = ("identical", "inverted", "subset", "related", "different", "unreadable")
MAX_WHY = 300
One = Annotated[str, typer.Argument(metavar="MARKET", help="A market: its id, ticker or slug.")]
Other = Annotated[str, typer.Argument(metavar="OTHER", help="The market of the other exchange.")]


@app.command()
def show(
    market: One,
    *,
    verdict: Annotated[str | None, typer.Option(help=f"Only this verdict: {', '.join(VERDICTS)}.")] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show what a market was compared with, and the clauses that decided; without --verdict, what says something."""
    import json

    from rich.console import Console
    from rich.table import Table

    from cli.stack.plan_builder import database
    from sql.database import connect
    from sql.queries import equivalents as queries

    if verdict is not None:
        _checked(verdict)
    with database(database_url) as url, connect(url, autocommit=True, name="presage equivalents") as conn:
        key = _key(conn, market)
        rows = [json.loads(text) for (text,) in queries.of_market(conn, market_key=key, verdict=verdict, limit=100)]
    table = Table("market", "question", "verdict", "clause", "what it says")
    for row in rows:
        said = f"{row['verdict']} (an operator's)" if row["overruled"] else row["verdict"]
        table.add_row(row["market_id"], row["question"], said, row["clause"] or "", row["clause_text"])
    Console().print(table if rows else "nothing was found that says something")


@app.command()
def overrule(
    market: One,
    other: Other,
    verdict: Annotated[str, typer.Argument(metavar="VERDICT", help=f"One of {', '.join(VERDICTS)}.")],
    *,
    why: Annotated[str, typer.Option(help="The reason: it is shown with the verdict.")],
    within: Annotated[
        str | None, typer.Option(help="Of a subset: which of the two markets' Yes implies the other's.")
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Put a verdict of yours in the place of the rules' until a text changes. The pair must have been judged."""
    _checked(verdict)
    if not why.strip() or len(why) > MAX_WHY:
        raise typer.BadParameter(f"a reason of 1 to {MAX_WHY} characters", param_hint="--why")
    if (within is not None) != (verdict == "subset") or within not in {None, market, other}:
        raise typer.BadParameter(f"{market} or {other}, with subset and with nothing else", param_hint="--within")
    _change(market, other, database_url, verdict=verdict, why=why.strip(), within=within)
    typer.echo(f"{market} and {other} are {verdict} now")


@app.command()
def restore(market: One, other: Other, *, database_url: DatabaseUrl = None) -> None:
    """Show the rules' verdict again."""
    judged = _change(market, other, database_url)
    typer.echo(f"{market} and {other} are {judged} again")


def _change(
    market: str,
    other: str,
    database_url: str | None,
    *,
    verdict: str | None = None,
    why: str | None = None,
    within: str | None = None,
) -> str:
    """Store or end an operator's verdict, and return the rules'."""
    from cli.stack.plan_builder import database
    from sql.database import connect
    from sql.queries import equivalents as queries

    with database(database_url) as url, connect(url, name="presage equivalents") as conn:
        keys = {name: _key(conn, name) for name in (market, other)}
        pair = queries.pair(conn, one=keys[market], other=keys[other])
        if pair is None:
            raise ValueError(
                f"{market} and {other} were not compared: their titles are not similar, or no pass has run"
            )
        left, right, judged, before, is_current = pair
        if verdict is not None and not is_current:
            raise ValueError("a text has changed since the pair was judged: decide after the next pass, within an hour")
        side = None if within is None else "left" if keys[within] == left else "right"
        queries.overrule(conn, left_key=left, right_key=right, verdict=verdict, within=side, why=why)
        record(conn, subject=f"{market} {other}", before=before, now=verdict or judged, why=why)
    return str(judged)


def _checked(verdict: str) -> None:
    if verdict not in VERDICTS:
        raise typer.BadParameter(f"{verdict!r} is none of {', '.join(VERDICTS)}", param_hint="VERDICT")


def _key(conn: psycopg.Connection, given: str) -> int:
    from sql.queries import markets

    found = markets.found(conn, id=given)
    if found is None:
        raise ValueError(f"there is no market {given}")
    return int(found[0])
