-- name: clock(now)$
-- The time by which data is expired, at most that of the caller: a clock that is ahead would expire data too early. The exchange and the
-- chain date the newest data of these two stages. (`least` passes over a null.)
select least(:now::timestamptz, now(), max(last_data_at) + interval '1 day') from stage_clocks where stage in ('ingestion', 'settlement');

-- name: drop_before(hypertable, before)$
-- Drops the chunks whose every row is older.
select drop_chunks_before(:hypertable::regclass, :before::timestamptz);

-- name: first_unbased()$
-- When the first block was whose rows are in no position's base; null if every block is in the bases, or none is stored.
select ts from chain_blocks where number > (select base_block from positions_head) order by number limit 1;

-- name: drop_stream_before(seq)$
-- Drops the chunks of the stream whose every block begins before this number.
select drop_stream_before(:seq::bigint);

-- name: stream_ends()^
-- The first numbers of the oldest and the newest block kept.
select min(seq_from), max(seq_from) from stream_blocks;

-- name: stream_block_from(seq)^
-- The first block that begins at or after this number, and when it was published.
select seq_from, ts from stream_blocks where seq_from >= :seq order by seq_from limit 1;

-- name: forget_leases(before)!
-- Deletes leases of runs that ended long ago.
delete from feed_leases where beat_at < :before;

-- name: forget_hosts(before)!
-- Deletes hosts that have run no feed for long.
delete from feed_hosts where beat_at < :before;

-- name: forget_watched(before)!
-- Deletes wallets unwatched so long ago that nothing is left of what was captured.
delete from wallets_watched where unwatched_at < :before;

-- name: forget_quarantine(before)!
-- Deletes payloads refused long ago.
delete from quarantine where ts < :before;

-- name: forget_gaps(kind, before)!
-- Deletes gaps in data that is no longer stored.
delete from coverage_gaps where kind = :kind and to_ts < :before;

-- name: forget_market_days(before)!
-- Deletes old reconciliation counts by market; the days themselves are kept.
delete from coverage_market_days where day < (:before::timestamptz at time zone 'UTC')::date;

-- name: forget_quality(held_before, failed_before)!
-- Deletes data-quality results; those that held are dropped sooner.
delete from quality_results where ran_at < case when rows_failed > 0 then :failed_before::timestamptz else :held_before::timestamptz end;

-- name: last_block_before(before)$
-- The highest block of the chain that is older. (Without `offset` every younger one would be passed on the way down.)
select max(number) from (select number from chain_blocks where ts < :before offset 0) as older;

-- name: forget_blocks(upto)!
-- Deletes blocks whose rows have been dropped; indexed and checked ranges begin after them.
with blocks as (delete from chain_blocks where number <= :upto),
    gone as (delete from chain_ranges where to_block <= :upto),
    unchecked as (delete from chain_checks where to_block <= :upto),
    floor as (
        update chain_heads set detail = detail || jsonb_build_object('floor', :upto::bigint + 1)
        where coalesce((detail ->> 'floor')::bigint, 0) <= :upto::bigint
    ),
    -- Shorter ones are inserted again, as their first block is their key; their count is of the remaining blocks.
    ranges as (
        update chain_ranges
        set from_block = :upto::bigint + 1,
            logs = (select coalesce(sum(b.logs), 0) from chain_blocks b where b.number between :upto::bigint + 1 and to_block)
        where from_block <= :upto::bigint and to_block > :upto::bigint
    )
update chain_checks set from_block = :upto::bigint + 1 where from_block <= :upto::bigint and to_block > :upto::bigint;

-- name: forget_incidents(before)!
-- Deletes old incidents that were resolved.
delete from data_incidents where last_at < :before and mended_at is not null;

-- name: sizes()
-- The largest tables and continuous aggregates, chunks and columns included.
select * from (
    select c.relname::text as name, pg_total_relation_size(c.oid) as bytes
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
      and not exists (select from timescaledb_information.hypertables h where h.hypertable_name = c.relname)
    union all
    select hypertable_name::text, hypertable_size(format('%%I.%%I', hypertable_schema, hypertable_name)::regclass)
    from timescaledb_information.hypertables
    where hypertable_schema = 'public'
    union all
    select view_name::text,
           hypertable_size(format('%%I.%%I', materialization_hypertable_schema, materialization_hypertable_name)::regclass)
    from timescaledb_information.continuous_aggregates
) as sizes
order by bytes desc
limit 20;
