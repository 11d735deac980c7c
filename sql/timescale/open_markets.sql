-- Keeps the active markets by their end and titles. Deleted ones go with their markets.
create function keep_open_markets() returns trigger language plpgsql as $$
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

create trigger open_inserted after insert on markets referencing new table as after
for each statement execute function keep_open_markets();
create trigger open_updated after update on markets referencing new table as after
for each statement execute function keep_open_markets();
