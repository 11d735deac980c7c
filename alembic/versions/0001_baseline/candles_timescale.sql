create materialized view candles_1m
with (timescaledb.continuous, timescaledb.materialized_only = false, timescaledb.create_group_indexes = false) as
select
    time_bucket(interval '1 minute', ts) as bucket, market_key, outcome,
    first(price, seq) as open, max(price) as high, min(price) as low, last(price, seq) as close,
    sum(size)::bigint as volume, sum(value_usd)::bigint as value_usd, count(*) as trades,
    min(seq) as first_seq, max(seq) as last_seq
from trades
group by 1, 2, 3
with no data;

create materialized view candles_1h
with (timescaledb.continuous, timescaledb.materialized_only = false, timescaledb.create_group_indexes = false) as
select
    time_bucket(interval '1 hour', bucket) as bucket, market_key, outcome,
    first(open, first_seq) as open, max(high) as high, min(low) as low, last(close, last_seq) as close,
    sum(volume)::bigint as volume, sum(value_usd)::bigint as value_usd, sum(trades)::bigint as trades,
    min(first_seq) as first_seq, max(last_seq) as last_seq
from candles_1m
group by 1, 2, 3
with no data;

create index candles_1m_market_idx on candles_1m (market_key, outcome, bucket desc);

create index candles_1h_market_idx on candles_1h (market_key, outcome, bucket desc);

create index candles_1h_bucket_idx on candles_1h (bucket desc);

create index candles_1m_bucket_idx on candles_1m using brin (bucket) with (autosummarize = on);

alter table trades set (
    timescaledb.enable_columnstore, timescaledb.segmentby = 'market_key, outcome', timescaledb.orderby = 'ts desc, seq desc'
);

alter table quotes set (
    timescaledb.enable_columnstore, timescaledb.segmentby = 'market_key, outcome', timescaledb.orderby = 'ts desc'
);

alter table book_events set (
    timescaledb.enable_columnstore, timescaledb.segmentby = 'market_key, outcome', timescaledb.orderby = 'ts desc, seq desc'
);

call add_columnstore_policy('trades', after => interval '7 days');

call add_columnstore_policy('quotes', after => interval '7 days');

call add_columnstore_policy('book_events', after => interval '7 days');

select add_continuous_aggregate_policy(
    'candles_1m', start_offset => interval '1 day', end_offset => interval '1 minute', schedule_interval => interval '10 minutes'
);

select add_continuous_aggregate_policy(
    'candles_1h', start_offset => interval '3 days', end_offset => interval '1 hour', schedule_interval => interval '30 minutes'
);
