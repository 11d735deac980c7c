create table market_bitmaps (
    kind text not null,
    name text not null,
    block integer not null,
    bits bit(16384) not null,
    constraint market_bitmaps_pkey primary key (kind, name, block)
);
comment on table market_bitmaps is 'A bitmap index of the markets, for lists with any combination of filters';
comment on column market_bitmaps.kind is 'status, exchange, category, series, tag or ranking';
comment on column market_bitmaps.name is 'Of a ranking: its generation';
comment on column market_bitmaps.block is 'Of market keys: the key divided by 16,384';
comment on column market_bitmaps.bits is '1: the market has the name; the block''s first key comes first';

create table open_markets (
    market_key integer not null,
    end_time timestamp with time zone,
    exchange text not null,
    titles text not null,
    constraint open_markets_pkey primary key (market_key),
    constraint open_markets_market_key_fkey foreign key (market_key) references markets (market_key) on delete cascade
);
create index open_markets_end_time_idx on open_markets (end_time, market_key) include (exchange);
create index open_markets_titles_idx on open_markets using gin (titles gin_trgm_ops);
comment on table open_markets is 'Active markets by their end and titles: few beside all, and rarely rewritten';
comment on column open_markets.titles is 'Question, slug and event title in lower case, a line each';

-- The names that a market is filtered by.
create function market_names(status text, exchange text, category text, series text, tags text[]) returns table (kind text, name text)
language sql immutable parallel safe
as $$
select 'status', status
union
select 'exchange', exchange
union
select 'category', category where category is not null
union
select 'series', series where series is not null
union
select 'tag', tag from unnest(tags) as tag where tag is not null
$$;

-- The markets that have all of these names.
create function markets_named(kinds text[], names text[]) returns table (block integer, bits bit)
language sql stable parallel safe
as $$
select b.block, bit_and(b.bits)
from unnest(kinds, names) as filter (kind, name)
join market_bitmaps b on b.kind = filter.kind and b.name = filter.name
group by b.block
having count(*) = cardinality(names)
$$;

-- The keys of a block's markets. Looks at 32 bits at a time: most are 0 if there are few markets.
create function market_keys(block integer, bits bit) returns setof integer
language sql immutable parallel safe
as $$
select (block << 14) + (word << 5) + place
from generate_series(0, 511) as word
cross join lateral (select substring(bits from (word << 5) + 1 for 32)::integer as bits offset 0) as part
cross join generate_series(0, 31) as place
where part.bits <> 0 and part.bits << place < 0
$$;

-- Flips the bits of names that markets get or lose.
create function keep_market_bitmaps() returns trigger language plpgsql as $$
begin
    execute format($query$
        with changed as (
            select kind, name, market_key
            from (%s) as m (held, market_key, status, exchange, category, series, tags)
            cross join lateral market_names(status, exchange, category, series, tags)
            group by kind, name, market_key
            having sum(held) <> 0
        ),
        words as (
            select kind, name, market_key >> 6 as word, bit_or(1::bigint << (63 - (market_key & 63)))::bit(64) as bits
            from changed
            group by kind, name, word
        )
        insert into market_bitmaps as b (kind, name, block, bits)
        select kind, name, word >> 8, bit_or(bits::bit(16384) >> ((word & 255) << 6))
        from words
        group by kind, name, word >> 8
        order by kind, name, word >> 8
        on conflict (kind, name, block) do update set bits = b.bits # excluded.bits
    $query$, case tg_op
        when 'INSERT' then 'select 1, market_key, status, exchange, category, series, tags from after'
        when 'DELETE' then 'select -1, market_key, status, exchange, category, series, tags from before'
        else 'select 1, market_key, status, exchange, category, series, tags from after
              union all select -1, market_key, status, exchange, category, series, tags from before'
    end);
    return null;
end
$$;

create trigger bitmaps_inserted after insert on markets referencing new table as after
for each statement execute function keep_market_bitmaps();
create trigger bitmaps_updated after update on markets referencing old table as before new table as after
for each statement execute function keep_market_bitmaps();
create trigger bitmaps_deleted after delete on markets referencing old table as before
for each statement execute function keep_market_bitmaps();

-- Keeps the active markets by their end and titles. Deleted ones go with their markets.
create function keep_open_markets() returns trigger language plpgsql as $$
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

create trigger open_inserted after insert on markets referencing new table as after
for each statement execute function keep_open_markets();
create trigger open_updated after update on markets referencing new table as after
for each statement execute function keep_open_markets();
