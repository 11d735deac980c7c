-- Lists of markets in various orders. The values they are ranked by are computed in activity.sql, and read here,
-- together with when that was last done, in Unix seconds.

-- name: by_volume_1h(exchange, limit)^
-- Markets of an exchange, most USD of the last hour first.
select
    (select (value #>> '{}')::bigint from settings where name = 'activity_computed_at'),
    array(
        select extended(record, json_build_object('period_volume_usd', as_number(value_1h), 'period_trades', trades_1h))
        from ranked_markets where exchange = :exchange and value_1h > 0
        order by value_1h desc, market_key desc
        limit :limit
    );

-- name: by_volume_24h(exchange, limit)^
-- Markets of an exchange, most USD of the last 24 hours first.
select
    (select (value #>> '{}')::bigint from settings where name = 'activity_computed_at'),
    array(
        select extended(record, json_build_object('period_volume_usd', as_number(value_24h), 'period_trades', trades_24h))
        from ranked_markets where exchange = :exchange and value_24h > 0
        order by value_24h desc, market_key desc
        limit :limit
    );

-- name: by_volume_7d(exchange, limit)^
-- Markets of an exchange, most USD of the last seven days first.
select
    (select (value #>> '{}')::bigint from settings where name = 'activity_computed_at'),
    array(
        select extended(record, json_build_object('period_volume_usd', as_number(value_7d), 'period_trades', trades_7d))
        from ranked_markets where exchange = :exchange and value_7d > 0
        order by value_7d desc, market_key desc
        limit :limit
    );

-- name: by_trades_1h(exchange, limit)^
-- Markets of an exchange, most trades of the last hour first.
select
    (select (value #>> '{}')::bigint from settings where name = 'activity_computed_at'),
    array(
        select extended(record, json_build_object('period_volume_usd', as_number(value_1h), 'period_trades', trades_1h))
        from ranked_markets where exchange = :exchange and trades_1h > 0
        order by trades_1h desc, market_key desc
        limit :limit
    );

-- name: by_trades_24h(exchange, limit)^
-- Markets of an exchange, most trades of the last 24 hours first.
select
    (select (value #>> '{}')::bigint from settings where name = 'activity_computed_at'),
    array(
        select extended(record, json_build_object('period_volume_usd', as_number(value_24h), 'period_trades', trades_24h))
        from ranked_markets where exchange = :exchange and trades_24h > 0
        order by trades_24h desc, market_key desc
        limit :limit
    );

-- name: by_trades_7d(exchange, limit)^
-- Markets of an exchange, most trades of the last seven days first.
select
    (select (value #>> '{}')::bigint from settings where name = 'activity_computed_at'),
    array(
        select extended(record, json_build_object('period_volume_usd', as_number(value_7d), 'period_trades', trades_7d))
        from ranked_markets where exchange = :exchange and trades_7d > 0
        order by trades_7d desc, market_key desc
        limit :limit
    );

-- name: trending(exchange, limit)^
-- Active markets of an exchange that trade enough, those whose last hour stands out most first; at the end those with nothing to compare with
-- (0).
select
    (select (value #>> '{}')::bigint from settings where name = 'activity_computed_at'),
    array(
        select extended(record, json_build_object(
            'vol_1h', as_number(value_1h), 'vol_24h', as_number(value_24h),
            'spike_ratio', round(nullif(spike_ratio, 0)::numeric, 4)::float8
        ))
        from ranked_markets
        where exchange = :exchange and status = 'ACTIVE' and spike_ratio >= 0
        order by spike_ratio desc nulls last, value_1h desc
        limit :limit
    );

-- name: breaking(exchange, limit)^
-- Active markets of an exchange, those whose price has moved most first.
select
    (select (value #>> '{}')::bigint from settings where name = 'activity_computed_at'),
    array(
        select extended(record, move)
        from ranked_markets
        where exchange = :exchange and status = 'ACTIVE' and abs(price_move) > 0
        order by abs(price_move) desc nulls last
        limit :limit
    );

-- name: resolving(within, exchange, limit, offset)
-- Active markets that end within a time, those that end first first.
select extended(m.record, json_build_object(
    'resolves_at', as_unix(m.end_time),
    'time_to_resolution', ceil(extract(epoch from m.end_time - now()))::bigint
))
from (
    select market_key, end_time
    from open_markets
    where end_time >= now() and end_time < now() + :within::interval and exchange = :exchange
    order by end_time, market_key
    limit :limit offset :offset
) as soon
join market_records m using (market_key)
order by soon.end_time, market_key;

-- name: newest(hours, exchange, limit, offset)
-- Markets listed within some hours, newest first.
select m.record::text
from (
    select market_key, created_at
    from markets
    where created_at >= now() - make_interval(hours => :hours::integer) and created_at <= now() + interval '1 minute'
        and exchange = :exchange
    order by created_at desc, market_key desc
    limit :limit offset :offset
) as new
join market_records m using (market_key)
order by new.created_at desc, market_key desc;

-- name: by_timeframe(exchange, limit)$
-- Active markets of seven timeframes by the time left to them: how many, and those that end first.
with timeframes (number, timeframe, after, until) as (
    values
        (1, '5m', interval '-1 s', interval '5 minutes'), (2, '15m', '5 minutes', '15 minutes'), (3, '1h', '15 minutes', '1 hour'),
        (4, '4h', '1 hour', '4 hours'), (5, '1d', '4 hours', '1 day'), (6, '1w', '1 day', '7 days'), (7, 'long', '7 days', '9000 years')
)
select json_build_object(
    'timeframes', json_agg(json_build_object('timeframe', timeframe, 'count', total, 'markets', markets) order by number),
    'timestamp', as_unix(now())
)::text
from timeframes
cross join lateral (
    select count(*) as total
    from open_markets
    where end_time >= now() and end_time > now() + after and end_time <= now() + until and exchange = :exchange
) as counted
cross join lateral (
    select coalesce(json_agg(extended(m.record, json_build_object(
        'mins_until_close', round(extract(epoch from m.end_time - now()) / 60, 2)::float8
    ))::json order by first.end_time, market_key), '[]') as markets
    from (
        select market_key, end_time
        from open_markets
        where end_time >= now() and end_time > now() + after and end_time <= now() + until and exchange = :exchange
        order by end_time, market_key
        limit :limit
    ) as first
    join market_records m using (market_key)
) as listed;

-- name: by_timeframe_of(status, exchange, limit, pattern, indexed, few)$
-- The same for markets of any state whose title or slug contains something.
with timeframes (number, timeframe, after, until) as materialized (
    select number, timeframe, now() + after, now() + until
    from (
        values
            (1, '5m', interval '-1 s', interval '5 minutes'), (2, '15m', '5 minutes', '15 minutes'), (3, '1h', '15 minutes', '1 hour'),
            (4, '4h', '1 hour', '4 hours'), (5, '1d', '4 hours', '1 day'), (6, '1w', '1 day', '7 days'), (7, 'long', '7 days', '9000 years')
    ) as left_to_them (number, timeframe, after, until)
),
pattern as materialized (
    select lower(:pattern) as pattern
),
bounds as materialized (
    select array_agg(until order by number) as until from timeframes
),
found as materialized (
    select market_key, end_time
    from open_markets
    where :status::text = 'ACTIVE' and exchange = :exchange and :indexed::boolean and end_time >= now()
        and titles like (select pattern from pattern)
    union all
    -- Not by the trigram index, which would be read whole.
    select market_key, end_time
    from open_markets
    where :status::text = 'ACTIVE' and exchange = :exchange and not :indexed::boolean and end_time >= now()
        and titles collate "C" like (select pattern from pattern)
    union all
    -- Few markets end before their planned end.
    select market_key, end_time
    from (
        select market_key, end_time, question, slug, event_title
        from markets
        where :status::text <> 'ACTIVE' and exchange = :exchange and status = :status and end_time >= now()
        offset 0
    ) as ended
    where market_titles(question, slug, event_title) like (select pattern from pattern)
),
-- Counted in one pass up to each bound: a group for each timeframe would take twice as long.
reached as materialized (
    select array[
        count(*) filter (where end_time <= (select until[1] from bounds)), count(*) filter (where end_time <= (select until[2] from bounds)),
        count(*) filter (where end_time <= (select until[3] from bounds)), count(*) filter (where end_time <= (select until[4] from bounds)),
        count(*) filter (where end_time <= (select until[5] from bounds)), count(*) filter (where end_time <= (select until[6] from bounds)),
        count(*) filter (where end_time <= (select until[7] from bounds))
    ] as totals
    from found
)
select json_build_object(
    'timeframes', json_agg(json_build_object(
        'timeframe', timeframe, 'count', totals[number] - coalesce(totals[number - 1], 0), 'markets', markets
    ) order by number),
    'timestamp', as_unix(now())
)::text
from timeframes
cross join reached
-- Frequent texts are found among the markets that end first; what is found of others is sorted.
cross join lateral (
    select array_agg(market_key) as market_keys, count(*) < :limit as few
    from (
        select market_key
        from (
            select market_key, titles
            from open_markets
            where :status::text = 'ACTIVE' and totals[7] > :few::integer
                and end_time >= now() and end_time > after and end_time <= until and exchange = :exchange
            order by end_time, market_key
            limit :limit * 25
        ) as nearest
        where titles like (select pattern from pattern)
        limit :limit
    ) as titled
) as walked
cross join lateral (
    select coalesce(json_agg(extended(m.record, json_build_object(
        'mins_until_close', round(extract(epoch from m.end_time - now()) / 60, 2)::float8
    ))::json order by m.end_time, market_key), '[]') as markets
    from (
        select market_key from unnest(walked.market_keys) as market_key where not few
        union all
        (
            select market_key
            from found
            where few and end_time > after and end_time <= until
            order by end_time, market_key
            limit :limit
        )
    ) as first
    join market_records m using (market_key)
) as listed;

-- name: compared(market_keys)
-- Markets with their last 24 hours, in the order given.
select extended(m.record, json_build_object('stats_24h', s.record))
from unnest(:market_keys::integer[]) with ordinality as given (market_key, place)
join market_records m using (market_key)
left join stats_records s on s.market_key = m.market_key and s.outcome = 0
order by given.place;

-- name: titled_busy(pattern, status, exchange, limit, most)
-- Markets whose title contains something, most traded first, among the busiest.
with busiest as materialized (
    select market_key, value_24h from market_activity where exchange = :exchange order by value_24h desc, market_key desc limit :most
),
found as materialized (
    select b.market_key, b.value_24h
    from busiest b
    left join open_markets o using (market_key)
    where case
        when o.market_key is not null then
            o.titles like (select lower(:pattern)) and o.exchange = :exchange and coalesce(:status::text, 'ACTIVE') = 'ACTIVE'
        else exists (  -- of the few that have ended
            select from markets m
            where m.market_key = b.market_key and market_titles(m.question, m.slug, m.event_title) like (select lower(:pattern))
                and (:status::text is null or m.status = :status) and m.exchange = :exchange
            offset 0
        )
    end
    order by b.value_24h desc, b.market_key desc  -- a join may return its rows in any order
    limit :limit
)
select market_key, value_24h, m.record::text
from found
join market_records m using (market_key)
order by found.value_24h desc, market_key desc;

-- name: titled_new(pattern, kinds, names, limit, most)
-- The same among the newest of those markets that have all of these names.
with named as materialized (
    select block, bits, sum(bit_count(bits)) over (order by block desc) - bit_count(bits) as newer
    from markets_named(:kinds, :names)
),
newest as materialized (
    select key as market_key
    from named
    cross join lateral market_keys(block, bits) as key
    where newer < :most::bigint
    order by key desc
    limit :most
),
found as materialized (
    select n.market_key
    from newest n
    cross join lateral (
        select from markets m
        where m.market_key = n.market_key and market_titles(m.question, m.slug, m.event_title) like (select lower(:pattern))
        offset 0
    ) as titled
    order by n.market_key desc
    limit :limit
)
select market_key, a.value_24h, m.record::text
from found
join market_records m using (market_key)
left join market_activity a using (market_key)
order by market_key desc;

-- name: titled(pattern, status, exchange, limit, most)
-- The same among all, by the trigram indexes; if more than `most` match, only some.
with found as materialized (
    (
        select market_key
        from open_markets
        where :status::text = 'ACTIVE' and titles like (select lower(:pattern)) and exchange = :exchange
        limit :most
    )
    union all
    -- Apart, as the planner has to know that few are in this state.
    (
        select market_key
        from markets
        where :status::text = 'CLOSED' and status = 'CLOSED' and market_titles(question, slug, event_title) like (select lower(:pattern))
            and exchange = :exchange
        limit :most
    )
    union all
    (
        select market_key
        from markets
        where coalesce(:status::text, 'RESOLVED') = 'RESOLVED' and market_titles(question, slug, event_title) like (select lower(:pattern))
            and (:status::text is null or status = :status) and exchange = :exchange
        limit :most
    )
),
best as materialized (
    select f.market_key, a.value_24h
    from found f
    left join market_activity a using (market_key)
    order by a.value_24h desc nulls last, f.market_key desc
    limit :limit
)
select market_key, value_24h, m.record::text
from best
join market_records m using (market_key)
order by best.value_24h desc nulls last, market_key desc;
