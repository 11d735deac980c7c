-- Whether what is live can be relied on: the feed's leader gave a sign of life within ten seconds, and nothing that it heard waits to be
-- written, or what it has written is not stale. A quiet exchange leaves nothing waiting; the setting is read only where something waits.
-- (The view's name sorts before those of the views that need it.)
create view alive_feed as
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
where stage = 'ingestion';
