create function market_titles(question text, slug text, event_title text) returns text
language sql immutable parallel safe
return lower(question || coalesce(E'\n' || slug, '') || case when event_title <> question then E'\n' || event_title else '' end);

-- Rows that are there get their titles without repetition when their market changes; both are found alike.
create or replace function keep_open_markets() returns trigger language plpgsql as $$
begin
    delete from open_markets o using after a where o.market_key = a.market_key and a.status <> 'ACTIVE';
    -- A conflict locks its row, which is written: so those that do not change are left out before.
    insert into open_markets (market_key, end_time, exchange, titles)
    select market_key, a.end_time, a.exchange, a.titles
    from (
        select market_key, end_time, exchange, market_titles(question, slug, event_title) as titles
        from after
        where status = 'ACTIVE'
    ) a
    left join open_markets o using (market_key)
    where (o.end_time, o.exchange, o.titles) is distinct from (a.end_time, a.exchange, a.titles)
    order by market_key
    on conflict (market_key) do update set end_time = excluded.end_time, exchange = excluded.exchange, titles = excluded.titles;
    return null;
end
$$;

create table category_days (
    category text not null,
    exchange text not null,
    sort text not null,
    status text not null,
    day timestamp with time zone not null,
    markets integer not null,
    constraint category_days_pkey primary key (category, exchange, sort, status, day)
);
comment on table category_days is 'How many markets of a category were listed or end on a day, for lists that skip many';
comment on column category_days.sort is 'created or resolution: which time of a market is in the day';
comment on column category_days.day is 'UTC; infinite for markets without that time: they come last';

create function keep_category_days() returns trigger language plpgsql as $$
begin
    execute format($query$
        insert into category_days as d (category, exchange, sort, status, day, markets)
        select category, exchange, sort, status, day, sum(held)
        from (%s) as m (held, category, exchange, status, created_at, end_time)
        cross join lateral (values
            ('created', date_trunc('day', coalesce(created_at, '-infinity'), 'UTC')),
            ('resolution', date_trunc('day', coalesce(end_time, 'infinity'), 'UTC'))
        ) as counted (sort, day)
        where category is not null
        group by category, exchange, sort, status, day
        having sum(held) <> 0
        order by category, exchange, sort, status, day
        on conflict (category, exchange, sort, status, day) do update set markets = d.markets + excluded.markets
    $query$, case tg_op
        when 'INSERT' then 'select 1, category, exchange, status, created_at, end_time from after'
        when 'DELETE' then 'select -1, category, exchange, status, created_at, end_time from before'
        else 'select 1, category, exchange, status, created_at, end_time from after
              union all select -1, category, exchange, status, created_at, end_time from before'
    end);
    return null;
end
$$;

-- From here until the end of the transaction nobody else writes markets.
create trigger days_inserted after insert on markets referencing new table as after
for each statement execute function keep_category_days();
create trigger days_updated after update on markets referencing old table as before new table as after
for each statement execute function keep_category_days();
create trigger days_deleted after delete on markets referencing old table as before
for each statement execute function keep_category_days();

insert into category_days (category, exchange, sort, status, day, markets)
select category, exchange, sort, status, day, count(*)
from markets
cross join lateral (values
    ('created', date_trunc('day', coalesce(created_at, '-infinity'), 'UTC')),
    ('resolution', date_trunc('day', coalesce(end_time, 'infinity'), 'UTC'))
) as counted (sort, day)
where category is not null
group by category, exchange, sort, status, day;

comment on column open_markets.titles is 'As market_titles returns them';
comment on column market_bitmaps.kind is 'status, exchange, category, series, tag, ranking or ranks';
comment on column market_bitmaps.name is 'Of a ranking: its generation; of ranks: the generation and, after a slash, ranks divided by 32,768';
