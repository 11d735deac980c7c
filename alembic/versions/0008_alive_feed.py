"""Whether the feed is alive is told without reading the setting that matters only while something waits to be written."""

from alembic import op

revision, down_revision = "0008", "0007"


def upgrade() -> None:
    op.execute("""
create or replace view alive_feed as
select
    coalesce(
        beat_at > now() - interval '10 seconds'
        and (
            detail ->> 'backlog_events' = '0'
            or last_data_at > now() - make_interval(
                secs => coalesce(
                    (
                        select jsonb_path_query_first(value, 'strict $ ? (@ >= 1 && @ <= 604800)')::int
                        from settings
                        where name = 'parameters.ingestion_fail_after_s'
                    ),
                    fail_after_s
                )
            )
        ),
        false
    ) as alive
from stage_clocks
where stage = 'ingestion'
""")


def downgrade() -> None:
    op.execute("""
create or replace view alive_feed as
select
    coalesce(
        beat_at > now() - interval '10 seconds'
        and (
            detail ->> 'backlog_events' = '0'
            or last_data_at > now() - make_interval(
                secs => coalesce(jsonb_path_query_first(fail.value, 'strict $ ? (@ >= 1 && @ <= 604800)')::int, fail_after_s)
            )
        ),
        false
    ) as alive
from stage_clocks
left join settings as fail on fail.name = 'parameters.ingestion_fail_after_s'
where stage = 'ingestion'
""")
