-- Events, categories, tags and series, and the markets that belong to them.

-- name: categories(exchange)^
-- An exchange's categories, those with most markets first, and when all names were last counted, the same in every row.
select
    (select as_unix(counted_at) from name_counts limit 1),
    array_to_string(array(
        select row_to_json(counted)
        from (
            select name as category, markets as market_count
            from name_counts where exchange = :exchange and kind = 'category'
            order by markets desc, name
        ) as counted
    ), ',');

-- name: tags(exchange)^
-- Tags, likewise.
select
    (select as_unix(counted_at) from name_counts limit 1),
    array_to_string(array(
        select row_to_json(counted)
        from (
            select name as tag, markets as market_count
            from name_counts where exchange = :exchange and kind = 'tag'
            order by markets desc, name
        ) as counted
    ), ',');

-- name: series(exchange)^
-- Series, likewise.
select
    (select as_unix(counted_at) from name_counts limit 1),
    array_to_string(array(
        select row_to_json(counted)
        from (
            select name as series, markets as market_count
            from name_counts where exchange = :exchange and kind = 'series'
            order by markets desc, name
        ) as counted
    ), ',');

-- name: has_event(name)$
-- Whether there is such an event.
select exists (select from events where event_id = :name) or exists (select from markets where event_id = :name);

-- name: has_category(name)$
-- Whether any market is of this category.
select exists (select from markets where category = :name);

-- name: event_by_resolution(name, status, limit, offset)
-- Markets of an event, those that end first first.
select record::text
from market_records
where event_id = :name and (:status::text is null or status = :status)
order by end_time nulls last, market_key
limit :limit offset :offset;

-- name: event_by_created(name, status, limit, offset)
-- Markets of an event, newest first.
select record::text
from market_records
where event_id = :name and (:status::text is null or status = :status)
order by created_at desc nulls last, market_key desc
limit :limit offset :offset;

-- name: category_by_resolution(name, status, exchange, limit, offset)
-- Markets of a category, those that end first first. The days that the offset skips are not read: their markets are counted.
with counted as (
    select day, sum(markets) as markets, sum(sum(markets)) over (order by day) as reached
    from category_days
    where category = :name and exchange = :exchange and sort = 'resolution' and (:status::text is null or status = :status)
    group by day
),
start as materialized (
    select day, reached - markets as skipped
    from counted
    where reached > :offset::bigint
    order by counted.day
    limit 1
),
head as materialized (
    select market_key, at
    from (
        (
            select market_key, coalesce(end_time, 'infinity') as at
            from markets
            where category = :name and exchange = :exchange and status = 'ACTIVE' and (:status::text is null or :status = 'ACTIVE')
                and coalesce(end_time, 'infinity') >= (select day from start)
            order by at, market_key
        )
        union all
        (
            select market_key, coalesce(end_time, 'infinity') as at
            from markets
            where category = :name and exchange = :exchange and status = 'CLOSED' and (:status::text is null or :status = 'CLOSED')
                and coalesce(end_time, 'infinity') >= (select day from start)
            order by at, market_key
        )
        union all
        (
            select market_key, coalesce(end_time, 'infinity') as at
            from markets
            where category = :name and exchange = :exchange and status = 'RESOLVED' and (:status::text is null or :status = 'RESOLVED')
                and coalesce(end_time, 'infinity') >= (select day from start)
            order by at, market_key
        )
    ) as m
    order by at, market_key
    limit :limit offset :offset::bigint - (select skipped from start)
)
select m.record::text
from head
join market_records m using (market_key)
order by head.at, market_key;

-- name: category_by_created(name, status, exchange, limit, offset)
-- Markets of a category, newest first; likewise.
with counted as (
    select day, sum(markets) as markets, sum(sum(markets)) over (order by day desc) as reached
    from category_days
    where category = :name and exchange = :exchange and sort = 'created' and (:status::text is null or status = :status)
    group by day
),
start as materialized (
    select day + interval '23:59:59.999999' as day, reached - markets as skipped
    from counted
    where reached > :offset::bigint
    order by counted.day desc
    limit 1
),
head as materialized (
    select market_key, at
    from (
        (
            select market_key, coalesce(created_at, '-infinity') as at
            from markets
            where category = :name and exchange = :exchange and status = 'ACTIVE' and (:status::text is null or :status = 'ACTIVE')
                and coalesce(created_at, '-infinity') <= (select day from start)
            order by at desc, market_key desc
        )
        union all
        (
            select market_key, coalesce(created_at, '-infinity') as at
            from markets
            where category = :name and exchange = :exchange and status = 'CLOSED' and (:status::text is null or :status = 'CLOSED')
                and coalesce(created_at, '-infinity') <= (select day from start)
            order by at desc, market_key desc
        )
        union all
        (
            select market_key, coalesce(created_at, '-infinity') as at
            from markets
            where category = :name and exchange = :exchange and status = 'RESOLVED' and (:status::text is null or :status = 'RESOLVED')
                and coalesce(created_at, '-infinity') <= (select day from start)
            order by at desc, market_key desc
        )
    ) as m
    order by at desc, market_key desc
    limit :limit offset :offset::bigint - (select skipped from start)
)
select m.record::text
from head
join market_records m using (market_key)
order by head.at desc, market_key desc;
