-- name: request_refresh(candles, since, until, forced)$
-- Asks the owner's job to materialise a window of a continuous aggregate: what TimescaleDB knows to have changed, or all of it if forced.
insert into candle_refreshes (candles, since, until, forced) values (:candles, :since, :until, :forced) returning refresh_id;

-- name: start_refresh()!
-- Has the job run, unless it does already.
select start_candles_refresh();

-- name: refresh_state(refresh_id)^
-- Whether a refresh has started and ended, and why it failed.
select started_at is not null, ended_at is not null, error from candle_refreshes where refresh_id = :refresh_id;

-- name: forget_refresh(refresh_id)!
-- Deletes a request: nobody waits for it any more.
delete from candle_refreshes where refresh_id = :refresh_id;

-- name: due(settled)
-- Hours in which trades were written late, newest first: from the first to the last of these, and the notes' ids.
select time_bucket(interval '1 hour', since) as hour, min(since), max(until), array_agg(due_id)
from candles_due
where until < :settled
group by 1
order by 1 desc;

-- name: forget_due(due_ids)!
-- Notes whose candles have been refreshed since.
delete from candles_due where due_id = any(:due_ids::bigint[]);

-- name: last_pass()$
-- When this stage last ended; null before the first time.
select beat_at from stage_clocks where stage = 'aggregates';

-- name: any_price()$
-- Whether there is anything to compute from.
select exists (select from live_prices);

-- name: oldest_trade()$
-- The first stored trade.
select min(ts) from trades;

-- name: upsert_stats(window_start, first_hour, last_hour, window_end)^
-- The 24 hours of each outcome: whole hours from the hourly candles, both edges from the minutes. Unchanged rows are rewritten every
-- five minutes only, which moves their window; outcomes without a trade in the window are deleted.
with parts as (
    select market_key, outcome, open, high, low, close, volume, value_usd, trades, first_seq, last_seq
    from candles_1h
    where bucket >= :first_hour::timestamptz and bucket < :last_hour::timestamptz
    union all
    select market_key, outcome, open, high, low, close, volume, value_usd, trades, first_seq, last_seq
    from candles_1m
    where bucket >= :window_start::timestamptz and bucket < :first_hour::timestamptz
    union all
    select market_key, outcome, open, high, low, close, volume, value_usd, trades, first_seq, last_seq
    from candles_1m
    where bucket >= :last_hour::timestamptz and bucket < :window_end::timestamptz
),
fresh as materialized (
    select market_key, outcome, first(open, first_seq) as open, max(high) as high, min(low) as low, last(close, last_seq) as close,
           sum(volume)::bigint as volume, sum(value_usd)::bigint as value_usd, sum(trades)::bigint as trades
    from parts
    group by market_key, outcome
),
gone as (
    delete from market_stats_24h s
    where not exists (select from fresh f where f.market_key = s.market_key and f.outcome = s.outcome)
    returning 1
),
written as (
    insert into market_stats_24h (market_key, outcome, open, high, low, close, volume, value_usd, trades, window_start, window_end,
                                  computed_at, exchange)
    select
        market_key, outcome, f.open, f.high, f.low, f.close, f.volume, f.value_usd, f.trades, :window_start, :window_end, now(), of.exchange
    from fresh f
    left join market_stats_24h known using (market_key, outcome)
    cross join lateral (
        select coalesce(known.exchange, (select m.exchange from markets m where m.market_key = f.market_key)) as exchange
    ) as of
    where of.exchange is not null  -- trades may have outlived their market: on the way back to a release that knew one exchange
    order by market_key, outcome
    on conflict (market_key, outcome) do update set
        open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close, volume = excluded.volume,
        value_usd = excluded.value_usd, trades = excluded.trades, window_start = excluded.window_start,
        window_end = excluded.window_end, computed_at = excluded.computed_at
    where (market_stats_24h.open, market_stats_24h.high, market_stats_24h.low, market_stats_24h.close, market_stats_24h.volume,
           market_stats_24h.value_usd, market_stats_24h.trades)
            is distinct from
          (excluded.open, excluded.high, excluded.low, excluded.close, excluded.volume, excluded.value_usd, excluded.trades)
       or market_stats_24h.window_end < excluded.window_end - interval '5 minutes'
    returning 1
)
select (select count(*) from fresh), (select count(*) from written), (select count(*) from gone);

-- name: rank(generation)!
-- A new generation of the ranking: markets with activity in 24 hours, most traded first, then by the newest activity.
insert into market_rankings (generation, rank, market_key, value_usd)
select :generation, row_number() over (order by value_usd desc, active_at desc nulls last, market_key desc), market_key, value_usd
from (
    select market_key, sum(value_usd) as value_usd, max(active_at) as active_at
    from (
        select market_key, value_usd, null::timestamptz as active_at from market_stats_24h
        union all
        select market_key, 0, ts from live_prices where ts > now() - interval '24 hours'
    ) as activity
    group by market_key
) as active;

-- name: index_ranking(generation)!
-- The bitmaps of a ranking's markets, from which on lists use it: of each 32,768 ranks, and of all.
with words as (
    select rank >> 15 as band, market_key >> 6 as word, bit_or(1::bigint << (63 - (market_key & 63)))::bit(64) as bits
    from market_rankings
    where generation = :generation
    group by band, word
)
insert into market_bitmaps (kind, name, block, bits)
select
    case when band is null then 'ranking' else 'ranks' end, concat_ws('/', :generation::bigint, band), word >> 8,
    bit_or(bits::bit(16384) >> ((word & 255) << 6))
from words
group by grouping sets ((band, word >> 8), (word >> 8));

-- name: forget_rankings(before)!
-- Drops generations that no cursor may use any more.
with forgotten as (
    delete from market_bitmaps where kind in ('ranking', 'ranks') and split_part(name, '/', 1)::bigint < :before
)
delete from market_rankings where generation < :before;

-- name: newest_bucket(since)$
-- The newest minute that holds a trade.
select max(bucket) from candles_1m where bucket >= :since;

-- name: candles_lately(minutes_since, hours_since)^
-- Number of recent candles, for the run's page.
select (select count(*) from candles_1m where bucket >= :minutes_since),
       (select count(*) from candles_1h where bucket >= :hours_since);

-- name: top(most)
-- The head of the newest ranking, for the run's page.
select r.rank, m.question, s.value_usd, s.trades, s.close
from market_rankings r
join markets m using (market_key)
left join lateral (
    select sum(value_usd)::bigint as value_usd, sum(trades)::bigint as trades, min(close) filter (where outcome = 0) as close
    from market_stats_24h where market_key = r.market_key
) s on true
where r.generation = (select max(generation) from market_rankings)
order by r.rank
limit :most;
