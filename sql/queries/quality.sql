-- How the data-quality suites get the rows they check, and where their results are stored. The expectations are in
-- orchestration/quality/suites/.

-- name: pass_alone()!
-- One pass at a time: from here to the end of the session, once the one before has ended.
select pg_advisory_lock(hashtextextended('presage.quality', 0));

-- name: make_room#
-- The temporary tables that new rows are copied into, so that all checks of a pass read the same ones, however many they are.
-- Without the exchange's own object and the description: no check needs them, and copying them took longer than the checks.
create temp table if not exists fresh_markets as
select
    market_key, market_id, exchange, gamma_id, slug, question, status, event_id, outcomes, token_ids, outcome_prices, winning_outcome, volume_usd,
    volume_24h_usd, liquidity_usd, tick_size, updated_at
from markets
with no data;
create temp table if not exists fresh_events as table events with no data;
create temp table if not exists fresh_market_status_changes as table market_status_changes with no data;
create temp table if not exists fresh_trades as table trades with no data;
create temp table if not exists fresh_quotes as table quotes with no data;
create temp table if not exists fresh_book_events as table book_events with no data;
create temp table if not exists fresh_book_anchors as table book_anchors with no data;
create temp table if not exists fresh_live_prices as table live_prices with no data;
create temp table if not exists fresh_live_books as table live_books with no data;
create temp table if not exists fresh_stream_events (seq bigint, ts timestamptz, type text, market_id text, message text);
create temp table if not exists fresh_feed_stats as table feed_stats with no data;
create temp table if not exists fresh_coverage_gaps as table coverage_gaps with no data;
create temp table if not exists fresh_coverage_days as table coverage_days with no data;
create temp table if not exists fresh_coverage_market_days as table coverage_market_days with no data;
create temp table if not exists fresh_tick_sizes as table tick_sizes with no data;
create temp table if not exists fresh_webhook_deliveries as table webhook_deliveries with no data;
create temp table if not exists fresh_exports as table exports with no data;
create temp table if not exists fresh_candles_1m as table candles_1m with no data;
create temp table if not exists fresh_candles_1h as table candles_1h with no data;
create temp table if not exists fresh_market_stats_24h as table market_stats_24h with no data;
create temp table if not exists fresh_market_activity as table market_activity with no data;
create temp table if not exists fresh_market_rankings as table market_rankings with no data;
create temp table if not exists fresh_signals as table signals with no data;
create temp table if not exists fresh_chain_ranges as table chain_ranges with no data;
create temp table if not exists fresh_chain_checks as table chain_checks with no data;
create temp table if not exists fresh_chain_blocks as table chain_blocks with no data;
create temp table if not exists fresh_settlements as table settlements with no data;
create temp table if not exists fresh_wallet_fills as table wallet_fills with no data;
create temp table if not exists fresh_ledger_entries as table ledger_entries with no data;
create temp table if not exists fresh_position_changes as table position_changes with no data;
create temp table if not exists fresh_wallet_activity as table wallet_activity with no data;
create temp table if not exists fresh_wallet_positions as table wallet_positions with no data;
create temp table if not exists fresh_leaderboards as table leaderboards with no data;
-- Numbers of the blocks, and those that a row of a newer one may have.
create or replace temp view fresh_numbers as
select number from fresh_chain_blocks union select generate_series(max(number) + 1, max(number) + 100) from fresh_chain_blocks;

-- Whether a market is in so many of the thousand groups, from one on: a plain expression, as the planner inlines it.
create or replace function pg_temp.in_share(market_key int, from_group int, groups int) returns boolean
    language sql immutable
    return (market_key + 1000 - from_group) % 1000 < groups;

-- --- The rows of a pass: those since the last one, a minute of overlap, and those of gaps that were filled meanwhile -----------
-- Of some of a thousand groups of markets, by their key: so many from one on.

-- name: new_rows(since)$
-- How many rows the largest table of the feed may have since then: those that it wrote, or the books that it confirmed. Figures that
-- cannot be true are for the checks to find.
select greatest(
    (select coalesce(sum(rows), 0) from feed_stats where ts >= :since and ts < now() + interval '10 minutes' and rows between 0 and 1000000000),
    (select count(*) from live_books where updated_at >= :since and verified)
)::bigint;

-- name: columns_amiss(declared)
-- Columns of tables that are not as declared, being missing, unexpected, or of another type.
with declared as materialized (
    select * from jsonb_to_recordset(:declared::jsonb) as d (table_name text, column_name text, type text)
)
select table_name, column_name, d.type, f.type
from declared d
full join (
    select c.relname::text as table_name, a.attname::text as column_name, format_type(a.atttypid, a.atttypmod) as type
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'public'::regnamespace and a.attnum > 0 and not a.attisdropped
        and c.relname in (select table_name from declared)
) as f using (table_name, column_name)
where d.type is distinct from f.type
order by table_name, column_name;

-- name: markets(after, most)!
-- New ones, those that changed their state, and those that are quoted.
insert into fresh_markets
select
    market_key, market_id, exchange, gamma_id, slug, question, status, event_id, outcomes, token_ids, outcome_prices, winning_outcome, volume_usd,
    volume_24h_usd, liquidity_usd, tick_size, updated_at
from markets
where market_key in (
    (select market_key from markets where market_key > coalesce(:after::bigint, 0) order by market_key limit :most)
    union all
    select market_key from fresh_market_status_changes
    union all
    select market_key from fresh_live_prices
);

-- name: events(since)!
-- Those that changed.
insert into fresh_events select * from events where updated_at >= :since;

-- name: market_status_changes(after, most)!
-- New ones.
insert into fresh_market_status_changes
select * from market_status_changes where change_id > coalesce(:after::bigint, 0) order by change_id limit :most;

-- name: trades(since, from_group, groups)!
-- Those since then, and those of gaps that have been filled since.
insert into fresh_trades
select * from trades where ts >= :since and pg_temp.in_share(market_key, :from_group, :groups)
union
select t.* from coverage_gaps g
join trades t on t.ts >= g.from_ts and t.ts <= g.to_ts and (g.market_key is null or t.market_key = g.market_key)  -- of other shards, too
where g.kind = 'trades' and g.filled_at >= :since and g.from_ts < :since
    and pg_temp.in_share(t.market_key, :from_group, :groups);

-- name: quotes(since, from_group, groups)!
-- Those since then.
insert into fresh_quotes select * from quotes where ts >= :since and pg_temp.in_share(market_key, :from_group, :groups);

-- name: book_events(since, from_group, groups)!
-- Those since then.
insert into fresh_book_events select * from book_events where ts >= :since and pg_temp.in_share(market_key, :from_group, :groups);

-- name: book_anchors(since, from_group, groups)!
-- Those since then.
insert into fresh_book_anchors select * from book_anchors where ts >= :since and pg_temp.in_share(market_key, :from_group, :groups);

-- name: live_prices(since, from_group, groups)!
-- Those that were confirmed since.
insert into fresh_live_prices select * from live_prices where updated_at >= :since and pg_temp.in_share(market_key, :from_group, :groups);

-- name: live_books(since, from_group, groups)!
-- Those that were written since, and are served.
insert into fresh_live_books select * from live_books where updated_at >= :since and verified and pg_temp.in_share(market_key, :from_group, :groups);

-- name: new_stream_events(after, most)^
-- The numbers of events to check: after the first, and up to the second.
select greatest(coalesce(:after::bigint, 0), last_seq - :most::bigint), last_seq from stream_head;

-- name: feed_stats(since)!
-- Those since then.
insert into fresh_feed_stats select * from feed_stats where ts >= :since;

-- name: coverage_gaps(since)!
-- Those that were found, closed or filled since.
insert into fresh_coverage_gaps
select * from coverage_gaps where greatest(created_at, to_ts, filled_at) >= :since;

-- name: coverage_days(since)!
-- Those that were reconciled since.
insert into fresh_coverage_days select * from coverage_days where checked_at >= :since;

-- name: coverage_market_days(since)!
-- Those of days that were reconciled since, or while the last pass looked: a count's last transaction may be long.
insert into fresh_coverage_market_days
select m.* from coverage_days d join coverage_market_days m using (day) left join markets k using (market_key)
where d.kind = own('trades', coalesce(k.exchange, 'polymarket')) and d.checked_at >= :since::timestamptz - interval '10 minutes';

-- name: tick_sizes(since)!
-- Those since then.
insert into fresh_tick_sizes select * from tick_sizes where ts >= :since;

-- name: webhook_deliveries(since)!
-- Those that wait, and those that ended since.
insert into fresh_webhook_deliveries
select * from webhook_deliveries where ended_at >= :since
union all
select * from webhook_deliveries where state = 'waiting' and ended_at is null;

-- name: exports(since)!
-- Those that were written since.
insert into fresh_exports select * from exports where created_at >= :since;

-- name: candles_1m(since, from_group, groups)!
-- Those since ten minutes before: a minute is compared with its trades when late ones have come.
insert into fresh_candles_1m
select * from candles_1m where bucket >= :since::timestamptz - interval '10 minutes' and pg_temp.in_share(market_key, :from_group, :groups);

-- name: candles_1h(since, from_group, groups)!
-- Those of the running hour, and of the one before while its last minute is looked at.
insert into fresh_candles_1h
select * from candles_1h where bucket >= date_trunc('hour', :since::timestamptz - interval '10 minutes', 'UTC')
    and pg_temp.in_share(market_key, :from_group, :groups);

-- name: market_stats_24h(since, from_group, groups)!
-- Those that were computed since.
insert into fresh_market_stats_24h select * from market_stats_24h where computed_at >= :since and pg_temp.in_share(market_key, :from_group, :groups);

-- name: market_activity(since, from_group, groups)!
-- Those that were computed since.
insert into fresh_market_activity select * from market_activity where computed_at >= :since and pg_temp.in_share(market_key, :from_group, :groups);

-- name: market_rankings()!
-- The newest one.
insert into fresh_market_rankings
select * from market_rankings where generation = (select max(generation) from market_rankings);

-- name: signals(since)!
-- Those that were found since; analysis catches up with a day at most.
insert into fresh_signals
select * from signals where ts >= :since::timestamptz - interval '1 day' and found_at >= :since;

-- name: chain_ranges()!
-- All of them: neighbours are joined.
insert into fresh_chain_ranges select * from chain_ranges;

-- name: chain_checks()!
-- All of them, likewise.
insert into fresh_chain_checks select * from chain_checks;

-- name: chain_blocks(seen, most)!
-- Blocks that were not indexed at the last pass, wherever they are, the highest first; and the newest again, which may have
-- been replaced.
insert into fresh_chain_blocks
select * from (
    select b.* from (
        select lower(span) as low, upper(span) as high
        from unnest((select range_agg(int8range(from_block, to_block, '[]')) from chain_ranges) - coalesce(:seen::int8multirange, '{}')) as span
    ) as new
    join chain_blocks b on b.number >= new.low and b.number < new.high
    order by b.number desc
    limit :most
) as unseen
union
select * from chain_blocks where number > (select max(number) from chain_blocks) - 64;

-- name: settlements()!
-- Those of the blocks, and whatever names a newer one.
insert into fresh_settlements
select * from settlements
where block_number in (select number from fresh_numbers) and ts >= (select min(ts) from fresh_chain_blocks) - interval '1 hour';

-- name: wallet_fills()!
-- Those of the blocks, and whatever names a newer one.
insert into fresh_wallet_fills
select * from wallet_fills
where block_number in (select number from fresh_numbers) and ts >= (select min(ts) from fresh_chain_blocks) - interval '1 hour';

-- name: ledger_entries()!
-- Those of the blocks, and whatever names a newer one.
insert into fresh_ledger_entries
select * from ledger_entries
where block_number in (select number from fresh_numbers) and ts >= (select min(ts) from fresh_chain_blocks) - interval '1 hour';

-- name: position_changes()!
-- Those of the blocks, and whatever names a newer one.
insert into fresh_position_changes
select * from position_changes
where block_number in (select number from fresh_numbers) and ts >= (select min(ts) from fresh_chain_blocks) - interval '1 hour';

-- name: wallet_activity()!
-- That of the blocks, and whatever names a newer one.
insert into fresh_wallet_activity
select * from wallet_activity
where block_number in (select number from fresh_numbers) and ts >= (select min(ts) from fresh_chain_blocks) - interval '1 hour';

-- name: wallet_positions()!
-- Those of wallets that have traded in the blocks.
insert into fresh_wallet_positions
select p.* from (select distinct wallet from fresh_wallet_fills) as w join wallet_positions p on not p.base and p.wallet = w.wallet;

-- name: leaderboards()!
-- All boards.
insert into fresh_leaderboards select * from leaderboards;

-- --- How far a suite has come -------------------------------------------------------------------------------------------------

-- name: last_pass()$
-- When the last whole pass ended; null before the first.
select max(ran_at) from quality_suites;

-- name: last_share(suites)^
-- Up to when the last pass checked tables of which it may take some of the markets, and the group after those that it took.
select until, from_group + groups from quality_suites where suite = any(:suites::text[]) order by until desc limit 1;

-- name: reached(suite)^
-- Up to when, and which number, and which blocks; null before the first pass.
select until, after, blocks::text from quality_suites where suite = :suite;

-- name: reach_markets(after, most)$
-- The number of the last market that a pass takes.
select coalesce(max(market_key), :after)::bigint
from (select market_key from markets where market_key > coalesce(:after::bigint, 0) order by market_key limit :most) as new;

-- name: reach_market_status_changes(after, most)$
-- The number of the last change that a pass takes.
select coalesce(max(change_id), :after)::bigint
from (select change_id from market_status_changes where change_id > coalesce(:after::bigint, 0) order by change_id limit :most) as new;

-- name: reach_stream_events(after, most)$
-- The number of the newest event.
select greatest(last_seq, :after::bigint) from stream_head where :most::bigint is not null;

-- name: reach_chain_blocks(seen, most)$
-- The blocks that have been seen after a pass: all that are indexed, or, if it took no more, those down to where it stopped.
select (
    coalesce(:seen::int8multirange, '{}') * coalesce(indexed, '{}')
    + coalesce(indexed, '{}') * int8multirange(int8range(
        (select min(number) from fresh_chain_blocks where not coalesce(:seen::int8multirange, '{}') @> number
         having count(*) >= :most::bigint), null
    ))
)::text
from (select range_agg(int8range(from_block, to_block, '[]')) as indexed from chain_ranges) as r;

-- name: reach(suite, stage, until, after, blocks, from_group, groups, rows, seconds)!
-- Stores how far a suite has come.
insert into quality_suites (suite, stage, until, after, blocks, from_group, groups, ran_at, rows, seconds)
values (:suite, :stage, :until, :after, :blocks::int8multirange, :from_group, :groups, now(), :rows, :seconds)
on conflict (suite) do update set
    stage = excluded.stage, until = excluded.until, after = excluded.after, blocks = excluded.blocks, from_group = excluded.from_group,
    groups = excluded.groups, ran_at = now(), rows = excluded.rows, seconds = excluded.seconds;

-- --- Results ------------------------------------------------------------------------------------------------------------------

-- name: standing()
-- Failures of earlier passes that still count.
select suite, name, severity, failed_at from quality_checks where rows_failed = 0 and counts_until > now() order by suite, name;

-- name: note(results)!
-- Stores a pass's findings, the newest result of each check and the history of those that had rows to check. A failure counts against
-- its stage while it lasts, and for some time after, as the next pass checks other rows.
with given as (
    select r.*
    from jsonb_to_recordset(:results::jsonb) as r (
        suite text, name text, stage text, severity text, rows_checked bigint, rows_failed bigint, samples jsonb, is_default boolean,
        hold_s float8
    )
    -- Of another exchange than Polymarket, those that fail, and those that failed before.
    where is_default or rows_failed > 0 or exists (select from quality_checks c where (c.suite, c.name) = (r.suite, r.name))
),
kept as (
    insert into quality_results (suite, name, stage, severity, rows_checked, rows_failed, samples)
    select suite, name, stage, severity, rows_checked, rows_failed, samples
    from given
    where rows_failed > 0 or rows_checked > 0 and is_default
)
insert into quality_checks as c (suite, name, stage, severity, ran_at, rows_checked, rows_failed, failed_at, counts_until)
select
    suite, name, stage, severity, now(), rows_checked, rows_failed,
    case when rows_failed > 0 then now() end, case when rows_failed > 0 then now() + make_interval(secs => hold_s) end
from given
on conflict (suite, name) do update set
    stage = excluded.stage, severity = excluded.severity, ran_at = now(),
    rows_checked = excluded.rows_checked, rows_failed = excluded.rows_failed,
    failed_at = coalesce(excluded.failed_at, c.failed_at),
    counts_until = coalesce(excluded.counts_until, c.counts_until);

-- name: exchanges_of(market_keys, market_ids, event_ids)
-- The exchanges of markets, and of events by theirs: what they are named by, as text, and the exchange.
select 'market_key', market_key::text, exchange from markets where market_key = any(:market_keys::bigint[])
union all
select 'market_id', market_id, exchange from markets where market_id = any(:market_ids::text[])
union all
select 'event_id', event_id, min(exchange) from markets where event_id = any(:event_ids::text[]) group by event_id;

-- name: forget_checks(names)!
-- Deletes checks that no longer exist, so that none counts against its stage for ever.
delete from quality_checks where suite || '.' || name <> all(:names::text[]);

-- name: history(since)
-- Rows checked and failed of each suite by the hour.
select suite, time_bucket('1 hour', ran_at) as hour, count(distinct ran_at), max(rows_checked), sum(rows_failed)::bigint
from quality_results
where ran_at >= :since
group by suite, hour
order by suite, hour;
