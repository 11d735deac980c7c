-- Exchanges of which what is live can be relied on: the feed's leader gave a sign of life within ten seconds, and nothing that it heard
-- waits to be written, or what it has written is not stale. A quiet exchange leaves nothing waiting; the setting is read only where
-- something waits. (Others call `live_exchanges()`, which plans it once in each session. `alive_feed` is Polymarket's, for the release before.)
create view alive_exchanges as
select exchange
from exchange_feeds()
join stage_clocks using (stage)
where beat_at > now() - interval '10 seconds'
    and (
        detail ->> 'backlog_events' = '0'
        or last_data_at > now() - make_interval(
            secs => coalesce(
                (
                    select jsonb_path_query_first(value, 'strict $ ? (@ >= 1 && @ <= 604800)')::int
                    from settings
                    where name = 'parameters.' || stage || '_fail_after_s'
                ),
                fail_after_s
            )
        )
    );
