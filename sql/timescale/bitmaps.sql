-- A bitmap index of the markets, for lists with any combination of filters: PostgreSQL's own bitmaps forget the order of the rows.
-- Of each name, and of each 16,384 market keys, it tells which of these markets have the name.

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
