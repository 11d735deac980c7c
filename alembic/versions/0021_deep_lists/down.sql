delete from market_bitmaps where kind = 'ranks';
comment on column market_bitmaps.name is 'Of a ranking: its generation';
comment on column market_bitmaps.kind is 'status, exchange, category, series, tag or ranking';
comment on column open_markets.titles is 'Question, slug and event title in lower case, a line each';

create or replace function keep_open_markets() returns trigger language plpgsql as $$
begin
    delete from open_markets o using after a where o.market_key = a.market_key and a.status <> 'ACTIVE';
    -- A conflict locks its row, which is written: so those that do not change are left out before.
    insert into open_markets (market_key, end_time, exchange, titles)
    select market_key, a.end_time, a.exchange, a.titles
    from (
        select market_key, end_time, exchange, lower(concat_ws(E'\n', question, slug, event_title)) as titles
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
drop trigger days_deleted on markets;
drop trigger days_updated on markets;
drop trigger days_inserted on markets;
drop function keep_category_days();
drop table category_days;

drop function market_titles(text, text, text);
