"""Candles of trades that were written late.

On the Community licence an insert that adds trades late notes the hours, and orchestration refreshes
them by force; all hours held are noted once, as their candles may be wrong already. The refresh policies first run an
hour from now instead of at once, beside the first trades.
"""

from collections.abc import Iterable

from alembic import op

from sql import migrate

revision, down_revision = "0003", "0002"

CREATE = (
    """
    create table candles_due (
        due_id bigint generated always as identity,
        since timestamp with time zone not null,
        until timestamp with time zone not null,
        primary key (due_id)
    )
    """,
    """
    comment on table candles_due is 'Stretches of time whose candles are to be refreshed: trades were written there a minute late or more. A stretch may be there several times, so that who adds one waits for nobody. Empty on the Apache licence'
    """,
    "comment on column candles_due.until is 'The last trade touched; within the hour of `since`'",
)
NOTE = (
    """
create function note_candles_due() returns trigger language plpgsql as $$
begin
    insert into candles_due (since, until)
    select min(ts), max(ts) from changed where ts < now() - interval '1 minute' group by time_bucket(interval '1 hour', ts);
    return null;
end
$$
    """,
    """
    create trigger candles_due_added after insert on trades referencing new table as changed
    for each statement execute function note_candles_due()
    """,
    # After the trigger: nothing is written between.
    """
    insert into candles_due (since, until)
    select hour, least(hour + interval '1 hour' - interval '1 microsecond', now())
    from timescaledb_information.chunks c,
        generate_series(c.range_start, c.range_end - interval '1 hour', interval '1 hour') as hour
    where c.hypertable_schema = 'public' and c.hypertable_name = 'trades' and hour <= now()
    """,
)
POLICIES = (
    "select remove_continuous_aggregate_policy('candles_1m', if_exists => true)",
    "select remove_continuous_aggregate_policy('candles_1h', if_exists => true)",
    """
    select add_continuous_aggregate_policy(
        'candles_1m', start_offset => interval '1 day', end_offset => interval '1 minute',
        schedule_interval => interval '10 minutes'{later}
    )
    """,
    """
    select add_continuous_aggregate_policy(
        'candles_1h', start_offset => interval '3 days', end_offset => interval '1 hour',
        schedule_interval => interval '30 minutes'{later}
    )
    """,
)
LATER = ", initial_start => now() + interval '1 hour'"
DROP = (
    "drop trigger candles_due_added on trades",
    "drop function note_candles_due()",
)


def upgrade() -> None:
    if migrate.current_license() == "timescale":
        _schedule(LATER)
    _run(CREATE)
    if migrate.current_license() == "timescale":
        _run(NOTE)


def downgrade() -> None:
    if migrate.current_license() == "timescale":
        _schedule("")
        _run(DROP)
    op.execute("drop table candles_due")


def _schedule(later: str) -> None:
    # Each in a transaction of its own: it waits for a run that is under way, and that run for what the one before had locked.
    with op.get_context().autocommit_block():
        _run(statement.format(later=later) for statement in POLICIES)


def _run(statements: Iterable[str]) -> None:
    for statement in statements:
        op.execute(statement)
