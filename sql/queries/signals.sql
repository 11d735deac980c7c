-- Signals, their measures as of any past minute, their storage and their records.

-- name: measures(at, min_trades, min_value, min_spread, min_lean)
-- The measures of every market that traded enough in the hour up to an instant, and was active and had data then; one row each. All are
-- integers (micro-units, milliseconds) or one division of such, so that they are reproducible at any time. Baselines of wide spreads and
-- leaning books are not read for the other markets.
with recent as materialized (
    select market_key, outcome, ts, seq, price, value_usd
    from trades
    where ts >= :at::timestamptz - interval '65 minutes' and ts < :at::timestamptz
),
hour as materialized (
    select market_key, count(*) as trades, sum(value_usd)::bigint as value
    from recent
    where ts >= :at::timestamptz - interval '1 hour'
    group by market_key
    having count(*) >= :min_trades::integer and sum(value_usd) >= :min_value::bigint
),
busy as materialized (
    select h.market_key, h.trades, h.value, m.market_id, m.exchange, m.end_time
    from hour h
    -- Each by its key (kept so by the offset): `join_sets` would have all markets ever read for a join by hash.
    cross join lateral (
        select market_id, exchange, end_time, status from markets where market_key = h.market_key offset 0
    ) as m
    where coalesce(
        -- The state as it was known then.
        (select c.to_status from market_status_changes c where c.market_key = h.market_key and c.ts < :at order by c.change_id desc limit 1),
        (select c.from_status from market_status_changes c where c.market_key = h.market_key order by c.change_id limit 1),
        m.status
    ) = 'ACTIVE'
),
-- The 24 hours: whole ones from their candles, both edges from the trades.
edges as (
    select market_key, sum(value_usd) as value, min(ts) as since
    from trades
    where ts >= :at::timestamptz - interval '24 hours'
        and ts < date_trunc('hour', :at::timestamptz - interval '24 hours' + interval '1 hour' - interval '1 microsecond')
    group by market_key
    union all
    select market_key, sum(value_usd), min(ts) from recent where ts >= date_trunc('hour', :at::timestamptz) group by market_key
),
hours as (
    select
        market_key, sum(value_usd) as value, min(bucket) as since,
        -- How much the first outcome's price usually moves in an hour, before the window that its move is judged in.
        sum(abs(close - open)) filter (where outcome = 0 and bucket + interval '1 hour' <= :at::timestamptz - interval '65 minutes') as moved,
        count(*) filter (where outcome = 0 and bucket + interval '1 hour' <= :at::timestamptz - interval '65 minutes') as moves
    from candles_1h
    where bucket >= date_trunc('hour', :at::timestamptz - interval '24 hours' + interval '1 hour' - interval '1 microsecond')
        and bucket < date_trunc('hour', :at::timestamptz)
    group by market_key
),
day as materialized (
    select market_key, sum(value)::bigint as value, min(since) as since, coalesce(sum(moved), 0)::bigint as moved, coalesce(sum(moves), 0)::bigint as moves
    from (
        select market_key, value, since, 0 as moved, 0 as moves from edges
        union all
        select market_key, value, since, moved, moves from hours
    ) as parts
    where market_key in (select market_key from busy)
    group by market_key
),
-- Since when a market has been traded, to the moment where that was lately, to the hour before.
lately as materialized (
    select market_key, min(ts) as since, sum(value_usd)::bigint as value from recent group by market_key
),
life as materialized (
    select d.market_key, case when l.value = d.value then l.since else d.since end as since
    from day d
    left join lately l using (market_key)
),
-- The path of the first outcome's price in the hour, from minute to minute.
minutes as materialized (
    select market_key, date_trunc('minute', ts) as minute, last(price, seq) as price, max(seq) as seq
    from recent
    where outcome = 0 and ts >= :at::timestamptz - interval '1 hour' and market_key in (select market_key from busy)
    group by market_key, minute
),
way as materialized (
    select market_key, count(*) as minutes, first(price, seq) as first, last(price, seq) as last, max(price) as high, min(price) as low
    from minutes
    group by market_key
),
-- What was missed, in milliseconds, as it was known to be missing then, whether it could be filled in later or not.
missed as materialized (
    select
        market_key, exchange, shard, shards,
        coalesce(sum(day_ms) filter (where kind = 'trades'), 0)::bigint as trades_day_ms,
        coalesce(sum(hour_ms) filter (where kind = 'trades'), 0)::bigint as trades_ms,
        coalesce(sum(hour_ms) filter (where kind = 'books'), 0)::bigint as books_ms
    from (
        select
            market_key, exchange, shard, shards, kind,
            as_ms(least(to_ts, :at)) - as_ms(greatest(from_ts, :at::timestamptz - interval '24 hours')) as day_ms,
            greatest(0, as_ms(least(to_ts, :at)) - as_ms(greatest(from_ts, :at::timestamptz - interval '70 minutes'))) as hour_ms
        from coverage_gaps
        where from_ts < :at and (to_ts is null or to_ts > :at::timestamptz - interval '24 hours')
            and (filled_at is null or filled_at > :at)
    ) as gaps
    group by market_key, exchange, shard, shards
)
select
    b.market_key, b.market_id, b.trades, b.value,
    coalesce(d.value, 0), spike_ratio(b.value, d.value), least(as_ms(:at) - as_ms(d.since), 86400000), coalesce(d.moved, 0), coalesce(d.moves, 0),
    market_price(q.bid, q.ask, q.mid, t.price), e.price,
    w.minutes, w.first, w.last, w.high, w.low,
    s.spread_ms, s.two_sided_ms, sb.spread_ms, sb.two_sided_ms,
    l.lean_sum, l.books, lb.lean_sum, lb.books,
    coalesce(g.trades_day_ms, 0), coalesce(g.trades_ms, 0), coalesce(g.books_ms, 0),
    as_ms(:at) - as_ms(f.since), case when b.end_time > f.since then as_ms(b.end_time) - as_ms(f.since) end
from busy b
left join life f using (market_key)
left join day d using (market_key)
left join way w using (market_key)
left join lateral (
    select sum(trades_day_ms)::bigint as trades_day_ms, sum(trades_ms)::bigint as trades_ms, sum(books_ms)::bigint as books_ms
    from missed
    where market_key = b.market_key or market_key is null and exchange = b.exchange and in_shard(b.market_id, shard, shards)
) as g on true
left join lateral (
    select bid, ask, mid from quotes
    where market_key = b.market_key and outcome = 0 and ts >= :at::timestamptz - interval '24 hours' and ts < :at
    order by ts desc limit 1
) as q on true
left join (
    select market_key, last(price, seq) as price from recent where outcome = 0 group by market_key
) as t on t.market_key = b.market_key
left join lateral earliest_price(b.market_key, 0::smallint, :at::timestamptz - interval '65 minutes', :at) as e on true
left join lateral spread_over(b.market_key, 0::smallint, :at::timestamptz - interval '5 minutes', :at) as s on true
left join lateral (
    -- Nested here (and kept here by the offset), so that values not needed are not computed.
    select f.* from spread_over(
        b.market_key, 0::smallint, :at::timestamptz - interval '65 minutes', :at::timestamptz - interval '5 minutes'
    ) as f
    where s.spread_ms >= :min_spread::bigint * s.two_sided_ms
    offset 0
) as sb on true
left join lateral newest_leans(b.market_key, 0::smallint, :at::timestamptz - interval '10 minutes', :at) as l on true
left join lateral (
    select f.* from hourly_leans(b.market_key, 0::smallint, :at::timestamptz - interval '70 minutes') as f
    where abs(l.lean_sum) >= :min_lean::bigint * l.books and l.books > 0
    offset 0
) as lb on true
order by b.market_key;

-- name: join_sets()!
-- Has queries of the transaction join sets by hash or merge, until `join_as_usual`. The planner has no statistics of common table
-- expressions: it expects a row of `busy`, and would compare each of thousands with each trade. Costs count what it was told to avoid
-- as immense, so that it would also compile the query.
select set_config('enable_nestloop', 'off', true), set_config('jit', 'off', true);

-- name: join_as_usual()!
-- Ends `join_sets`.
select set_config(name, reset_val, true) from pg_settings where name in ('enable_nestloop', 'jit');

-- name: busy_markets(at, min_trades, min_value)$
-- How many markets traded enough in the hour up to an instant.
select count(*)
from (
    select from trades
    where ts >= :at::timestamptz - interval '1 hour' and ts < :at
    group by market_key
    having count(*) >= :min_trades::integer and sum(value_usd) >= :min_value::bigint
) as busy;

-- name: analyse_alone()!
-- One analysis at a time, until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('presage.analysis', 0));

-- name: analysed_until()$
-- The minute up to which everything has been analysed; null before the first.
select (detail ->> 'until')::timestamptz from stage_clocks where stage = 'analysis';

-- name: ingested_until()$
-- Up to when the feeds' data is in. Another exchange's feed that is late is waited for, but not longer than 20 seconds, nor if it is
-- gone: what it writes later is found when the day is recomputed.
select least(i.last_data_at, (
    select min(o.last_data_at)
    from stage_clocks o
    where starts_with(o.stage, 'ingestion_') and o.beat_at > now() - interval '10 seconds' and o.detail ->> 'backlog_events' <> '0'
        and o.last_data_at > now() - interval '20 seconds'
))
from stage_clocks i
where i.stage = 'ingestion';

-- name: clocks()^
-- The minute up to which everything has been analysed, and when analysis last ran.
select (detail ->> 'until')::timestamptz, beat_at from stage_clocks where stage = 'analysis';

-- name: parameters_at(at)^
-- The edition of the formulas and the parameters in force at an instant; the first known ones before any.
select definitions, parameters
from analysis_parameters
order by since <= :at::timestamptz desc, case when since <= :at::timestamptz then since end desc, since
limit 1;

-- name: parameter_history()
-- Since when which edition of the formulas and which parameters were in force, oldest first.
select since, definitions, parameters from analysis_parameters order by since;

-- name: note_parameters(since, definitions, parameters)!
-- Records that these parameters are in force from here on.
insert into analysis_parameters (since, definitions, parameters) values (:since, :definitions, :parameters::jsonb)
on conflict (since) do update set definitions = excluded.definitions, parameters = excluded.parameters;

-- name: last_found(since, until)
-- When each kind of signal was last found, of those that analysis computes; oldest first.
select type, market_key, outcome, direction, max(ts)
from signals
where ts >= :since and ts < :until and type <> 'whale_alert'
group by type, market_key, outcome, direction
order by max(ts);

-- name: add(ts, rows)
-- Stores signals of one instant; returns new ones, as the API shows them.
with given as (
    select * from jsonb_to_recordset(:rows::jsonb) as r (
        market_key integer, outcome smallint, signal_id text, type text, value float8, threshold float8, score float8,
        direction smallint, window_s integer, detail jsonb
    )
),
added as (
    insert into signals (ts, market_key, outcome, signal_id, type, value, threshold, score, direction, window_s, detail)
    select :ts, market_key, outcome, signal_id::bigint, type, value, threshold, score, direction, window_s, detail
    from given
    order by market_key, signal_id
    on conflict do nothing
    returning *
)
select a.type, m.market_id, signal_record(
    a.signal_id, a.type, m.market_id, a.outcome, a.value, a.threshold, a.score, a.direction, a.window_s, a.detail, a.ts
)::text
from added a
join markets m using (market_key)
order by a.type, a.market_key;

-- name: between(since, until)
-- The stored signals of a span, of those that analysis computes.
select ts, market_key, outcome, signal_id, type, value, threshold, score, direction, window_s, detail
from signals
where ts >= :since and ts < :until and type <> 'whale_alert'
order by ts, market_key, signal_id;

-- name: take_out(since, until, ids)!
-- Deletes signals of a span that the data does not confirm.
delete from signals
where ts >= :since and ts < :until and signal_id = any(:ids::bigint[]) and type <> 'whale_alert';

-- name: whale_blocks(first_ts, last_ts, least)$
-- The blocks of a span with settlements of at least this much USD.
select coalesce(array_agg(distinct block_number), '{}')
from settlements
where ts between :first_ts and :last_ts and counted and value_usd >= :least::bigint;

-- name: take_out_whales(since, until)!
-- Deletes whale alerts of a span without a settlement in their block; those of blocks that are no longer kept stay.
delete from signals a
where a.type = 'whale_alert' and a.ts >= :since and a.ts < :until
    and exists (
        select from chain_blocks b
        where b.number = (a.detail ->> 'block_number')::bigint and b.ts = a.ts and b.ts >= :since and b.ts < :until
    )
    and not exists (
        select
        from settlements s
        join chain_tokens k using (token_key)
        join tokens t using (token_id)
        where s.ts = a.ts and s.ts >= :since and s.ts < :until  -- the instants spare a look into every chunk
            and s.block_number = (a.detail ->> 'block_number')::bigint and s.log_index = (a.detail ->> 'log_index')::int
            and s.counted and (t.market_key, t.outcome) = (a.market_key, a.outcome) and s.value_usd / 1000000.0::float8 = a.value
            and '0x' || encode(s.tx_hash, 'hex') = a.detail ->> 'tx_hash'
    );

-- name: whales(since, until)
-- How many whale alerts a span has: the type and their number, where there are any.
select type, count(*) from signals where ts >= :since and ts < :until and type = 'whale_alert' group by type;

-- name: counts(since)
-- The number of recent signals of each type.
select type, count(*) from signals where ts >= :since group by type order by type;

-- name: strongest(since, most)
-- The strongest recent signals, for the run's page.
select s.ts, s.type, m.question, s.value, s.threshold, s.score
from signals s
join markets m using (market_key)
where s.ts >= :since
order by s.score desc, s.ts desc
limit :most;

-- --- Queries of the API ---------------------------------------------------------------------------------------------------------

-- name: of_market(market_key, type, since, until, limit)$
-- The newest signals of a market in a range, of one type or of all; and all others at the last one's timestamp, so that a range
-- that ends there misses none.
select coalesce(json_agg(record order by ts desc, signal_id), '[]')::text
from (
    select ts, signal_id, record
    from signal_records
    where market_key = :market_key and ts >= :since and ts < :until and (:type::text is null or type = :type)
    order by ts desc
    fetch first (:limit::bigint) rows with ties
) as s;

-- name: top(exchange, type, limit)
-- The strongest signals of an exchange in the last 24 hours, of one type or of all.
select record::text
from signal_records
where exchange = :exchange and ts > now() - interval '24 hours' and (:type::text is null or type = :type)
order by score desc, ts desc, signal_id
limit :limit;

-- name: raw(limit)$
-- The newest signals in stored form.
select coalesce(json_agg(row_to_json(s) order by s.ts desc, s.signal_id), '[]')::text
from (
    select m.market_id, m.slug, s.*
    from (select * from signals order by ts desc, signal_id limit :limit) as s
    left join lateral (select market_id, slug from markets where market_key = s.market_key offset 0) as m on true
) as s;

-- name: raw_of_market(market_key, type, limit)$
-- The same of one market.
select coalesce(json_agg(row_to_json(s) order by s.ts desc, s.signal_id), '[]')::text
from (
    select * from signals
    where market_key = :market_key and (:type::text is null or type = :type)
    order by ts desc, signal_id
    limit :limit
) as s;
