-- Candles as continuous aggregates, hours from minutes. Open and close are by seq, as trades share instants. Orchestration refreshes
-- them right after each load; what is not refreshed yet is computed when read (materialized_only = false), so that a reader is never
-- behind, but must always say from when on it wants candles. No data at first: filling cannot be done inside a transaction.

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
-- Statistics of the last day read the hours of all markets.
create index candles_1h_bucket_idx on candles_1h (bucket desc);
-- The newest minutes of all markets are looked over every other minute.
create index candles_1m_bucket_idx on candles_1m using brin (bucket) with (autosummarize = on);

-- TimescaleDB keeps a log of what changed below the point up to which it has materialised, but a transaction that commits while that
-- point moves over its rows may leave nothing in the log: their candles would stay wrong for good. And the log does not say where to
-- look. So each insert notes to which hours it adds late, in its own transaction; orchestration refreshes them by force.
create function note_candles_due() returns trigger language plpgsql as $$
begin
    insert into candles_due (since, until)
    select min(ts), max(ts) from changed where ts < now() - interval '1 minute' group by time_bucket(interval '1 hour', ts);
    return null;
end
$$;

create trigger candles_due_added after insert on trades referencing new table as changed
for each statement execute function note_candles_due();
