-- Counts the markets of each category by the day of their listing, and of their end.
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

create trigger days_inserted after insert on markets referencing new table as after
for each statement execute function keep_category_days();
create trigger days_updated after update on markets referencing old table as before new table as after
for each statement execute function keep_category_days();
create trigger days_deleted after delete on markets referencing old table as before
for each statement execute function keep_category_days();
