-- Events, categories, tags and series, and the markets that belong to them.

-- name: categories()^
-- Categories, those with most markets first, and when all names were last counted, the same in every row.
select
    (select as_unix(counted_at) from taxonomy_counts limit 1),
    array(
        select json_build_object('category', name, 'market_count', markets)::text
        from taxonomy_counts where kind = 'category'
        order by markets desc, name
    );

-- name: tags()^
-- Tags, likewise.
select
    (select as_unix(counted_at) from taxonomy_counts limit 1),
    array(
        select json_build_object('tag', name, 'market_count', markets)::text
        from taxonomy_counts where kind = 'tag'
        order by markets desc, name
    );

-- name: series()^
-- Series, likewise.
select
    (select as_unix(counted_at) from taxonomy_counts limit 1),
    array(
        select json_build_object('series', name, 'market_count', markets)::text
        from taxonomy_counts where kind = 'series'
        order by markets desc, name
    );

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
-- Markets of a category, those that end first first: of each state by the index, then together.
with head as materialized (
    select m.market_key, m.end_time
    from unnest(array['ACTIVE', 'CLOSED', 'RESOLVED']) as state
    cross join lateral (
        select market_key, end_time
        from markets
        where category = :name and status = state and exchange = :exchange
        order by end_time
        limit :limit::bigint + :offset::bigint
    ) as m
    where :status::text is null or state = :status
    order by m.end_time nulls last, m.market_key
    limit :limit offset :offset
)
select m.record::text
from head
join market_records m using (market_key)
order by head.end_time nulls last, market_key;

-- name: category_by_created(name, status, exchange, limit, offset)
-- Markets of a category, newest first: of each state by the index, then together.
with head as materialized (
    select m.market_key, m.created_at
    from unnest(array['ACTIVE', 'CLOSED', 'RESOLVED']) as state
    cross join lateral (
        select market_key, created_at
        from markets
        where category = :name and status = state and exchange = :exchange
        order by created_at desc nulls last
        limit :limit::bigint + :offset::bigint
    ) as m
    where :status::text is null or state = :status
    order by m.created_at desc nulls last, m.market_key desc
    limit :limit offset :offset
)
select m.record::text
from head
join market_records m using (market_key)
order by head.created_at desc nulls last, market_key desc;
