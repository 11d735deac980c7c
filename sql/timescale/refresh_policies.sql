-- A safety net, should orchestration stand still. To refresh a range whose trades are gone would delete its candles, so the minutes
-- are refreshed no further back than the shortest retention that settings allow. The hours are made of minutes, which stay.
-- The first run is an hour away: a new database is written to, and refreshed by orchestration, without a second one beside it.

select add_continuous_aggregate_policy(
    'candles_1m', start_offset => interval '1 day', end_offset => interval '1 minute', schedule_interval => interval '10 minutes',
    initial_start => now() + interval '1 hour'
);
select add_continuous_aggregate_policy(
    'candles_1h', start_offset => interval '3 days', end_offset => interval '1 hour', schedule_interval => interval '30 minutes',
    initial_start => now() + interval '1 hour'
);
