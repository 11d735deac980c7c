-- Activity of markets, the source of their rankings, updated once a minute. The formulas shared with signals are functions
-- (sql/timescale/functions.sql, measures.sql).

-- name: week_head()^
-- Up to which hour the week is summed, and when that was done.
select until, computed_at from market_weeks limit 1;

-- name: forget_week()!
-- Clears the week; it is rewritten as a whole.
delete from market_weeks;

-- name: write_week(until, now)!
-- Sums the hours of the last seven days before one: they hardly ever change, and are many.
insert into market_weeks (market_key, value_usd, trades, until, computed_at)
select market_key, sum(value_usd)::bigint, sum(trades)::bigint, :until, :now
from candles_1h
where bucket > :now::timestamptz - interval '7 days' and bucket < :until::timestamptz
group by market_key;

-- name: upsert(now, until, min_trades, min_value)^
-- The recent activity of each market: USD and trades of three periods over all outcomes, how far the last hour stands out of the day,
-- and how far the first outcome's price has moved. Unchanged rows are left alone; markets without activity are deleted. The last hour
-- stands out by its USD over the hourly mean of the 24 hours or, of a market first traded within them, of the hours since (from the
-- start of the first trade's hour on). The ratio is null for markets that trade too little to be ranked by it, and 0 while there are
-- less than three hours to compare with.
with hour as materialized (
    select market_key, sum(value_usd)::bigint as value, count(*) as trades
    from trades
    where ts > :now::timestamptz - interval '1 hour'
    group by market_key
),
day as materialized (
    select market_key, sum(value_usd)::bigint as value, sum(trades)::bigint as trades
    from market_stats_24h
    group by market_key
),
week as materialized (
    select market_key, sum(value_usd)::bigint as value, sum(trades)::bigint as trades
    from (
        select market_key, value_usd, trades from market_weeks
        union all
        select market_key, value_usd, trades from candles_1h where bucket >= :until::timestamptz
    ) as hours
    group by market_key
),
-- Since when each market has been traded in the 24 hours, and how often before the hours that the week does not have.
begun as materialized (
    select market_key, min(bucket) as since, coalesce(sum(trades) filter (where bucket < :until::timestamptz), 0) as trades
    from candles_1h
    where bucket > :now::timestamptz - interval '24 hours'
    group by market_key
),
life as materialized (
    select market_key,
        -- More trades in the week than in the day: it was traded before.
        case when w.trades > b.trades then 24 else extract(epoch from :now::timestamptz - b.since)::float8 / 3600 end as hours
    from begun b
    left join market_weeks w using (market_key)
),
move as materialized (
    select p.market_key, market_price(p.bid, p.ask, p.mid, p.last) as price, sample.price as baseline
    from live_prices p
    cross join lateral earliest_price(
        p.market_key, 0::smallint, :now::timestamptz - interval '65 minutes', :now::timestamptz + interval '1 minute'
    ) as sample
    where p.outcome = 0 and p.ts >= :now::timestamptz - interval '65 minutes' and sample.price is not null
),
fresh as materialized (
    select
        market_key,
        coalesce(hour.value, 0) as value_1h,
        coalesce(hour.trades, 0) as trades_1h,
        -- The longer figures were computed a moment before the hour's.
        greatest(hour.value, day.value, 0) as value_24h,
        greatest(hour.trades, day.trades, 0) as trades_24h,
        greatest(hour.value, day.value, week.value, 0) as value_7d,
        greatest(hour.trades, day.trades, week.trades, 0) as trades_7d,
        case
            when hour.trades < :min_trades::integer or hour.value < :min_value::bigint or hour.value is null then null
            when coalesce(life.hours, 0) < 3 then 0
            else spike_ratio(hour.value, greatest(hour.value, day.value)) * least(life.hours, 24) / 24
        end as spike_ratio,
        move.price as price_now,
        move.baseline as price_baseline,
        move.price - move.baseline as price_move
    from hour
    full join day using (market_key)
    full join week using (market_key)
    full join move using (market_key)
    left join life using (market_key)
),
gone as (
    delete from market_activity a
    where not exists (select from fresh f where f.market_key = a.market_key)
    returning 1
),
written as (
    insert into market_activity as a (
        market_key, value_1h, trades_1h, value_24h, trades_24h, value_7d, trades_7d, spike_ratio, price_now, price_baseline, price_move,
        computed_at, exchange
    )
    select
        market_key, f.value_1h, f.trades_1h, f.value_24h, f.trades_24h, f.value_7d, f.trades_7d, f.spike_ratio, f.price_now, f.price_baseline,
        f.price_move, :now, of.exchange
    from fresh f
    left join market_activity known using (market_key)
    cross join lateral (
        select coalesce(known.exchange, (select m.exchange from markets m where m.market_key = f.market_key)) as exchange
    ) as of
    where of.exchange is not null  -- trades may have outlived their market: on the way back to a release that knew one exchange
    order by market_key
    on conflict (market_key) do update set
        value_1h = excluded.value_1h, trades_1h = excluded.trades_1h, value_24h = excluded.value_24h, trades_24h = excluded.trades_24h,
        value_7d = excluded.value_7d, trades_7d = excluded.trades_7d, spike_ratio = excluded.spike_ratio,
        price_now = excluded.price_now, price_baseline = excluded.price_baseline, price_move = excluded.price_move,
        computed_at = excluded.computed_at
    where (a.value_1h, a.trades_1h, a.value_24h, a.trades_24h, a.value_7d, a.trades_7d, a.spike_ratio, a.price_now, a.price_baseline)
            is distinct from
          (excluded.value_1h, excluded.trades_1h, excluded.value_24h, excluded.trades_24h, excluded.value_7d, excluded.trades_7d,
           excluded.spike_ratio, excluded.price_now, excluded.price_baseline)
    returning 1
),
-- Records that it was done: unchanged rows do not show it, and the stage's clock may be touched by a pass in which this one
-- failed.
passed as (
    insert into settings (name, value) values ('activity_computed_at', to_jsonb(as_unix(:now::timestamptz)))
    on conflict (name) do update set value = excluded.value, updated_at = now()
)
select (select count(*) from fresh), (select count(*) from written), (select count(*) from gone);

-- name: counted_since(since)$
-- Whether categories, tags and series have been counted since.
select exists (select from name_counts where counted_at >= :since);

-- name: count_taxonomy(now)$
-- The number of markets of each exchange's categories, tags and series. Names without markets are deleted.
with fresh as materialized (
    select exchange, 'category' as kind, category as name, count(*) as markets from markets where category is not null group by exchange, category
    union all
    select exchange, 'series', series, count(*) from markets where series is not null group by exchange, series
    union all
    select exchange, 'tag', tag, count(*) from markets cross join unnest(tags) as tag where tag is not null group by exchange, tag
),
gone as (
    delete from name_counts c
    where not exists (select from fresh f where f.exchange = c.exchange and f.kind = c.kind and f.name = c.name)
),
written as (
    insert into name_counts (exchange, kind, name, markets, counted_at)
    select exchange, kind, name, markets, :now from fresh
    on conflict (exchange, kind, name) do update set markets = excluded.markets, counted_at = excluded.counted_at
)
select count(*) from fresh;
