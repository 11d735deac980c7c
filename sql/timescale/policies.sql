-- A safety net, should orchestration stand still. It refreshes the last days only, far from where retention drops trades: to refresh
-- a range whose trades are gone would delete its candles.

select add_continuous_aggregate_policy(
    'candles_1m', start_offset => interval '2 days', end_offset => interval '1 minute', schedule_interval => interval '10 minutes'
);
select add_continuous_aggregate_policy(
    'candles_1h', start_offset => interval '3 days', end_offset => interval '1 hour', schedule_interval => interval '30 minutes'
);
