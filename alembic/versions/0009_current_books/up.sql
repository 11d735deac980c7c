alter table live_books add column anchored_ts timestamptz;
comment on column live_books.anchored_ts is 'Of the full snapshot that the book was last built from';

-- Live books with the changes stored since each was written. The feed writes a book only now and then; the changes, at once.
-- As in the feed, the latest change of a level holds, and one older than the book's last full snapshot is part of it.
create view book_current as
select
    b.market_key, b.outcome, b.verified, b.tick_size, b.updated_at,
    greatest(b.seq, changed.seq) as seq,
    greatest(b.ts, changed.ts) as ts,
    case when changed.ts >= b.ts then changed.hash else b.hash end as hash,
    coalesce(changed.bid_prices, b.bid_prices) as bid_prices,
    coalesce(changed.bid_sizes, b.bid_sizes) as bid_sizes,
    coalesce(changed.ask_prices, b.ask_prices) as ask_prices,
    coalesce(changed.ask_sizes, b.ask_sizes) as ask_sizes
from live_books b
left join lateral (
    with recent as materialized (
        select e.side, e.price, e.size, e.ts, e.seq, e.hash
        from book_events e
        where e.market_key = b.market_key and e.outcome = b.outcome and e.side is not null
            and e.ts >= greatest(b.ts - interval '5 seconds', b.anchored_ts)
            and e.ts > now() - interval '15 minutes' -- a changed book is written within five: older chunks need not be read
    ),
    latest as materialized (
        select distinct on (side, price) side, price, size from recent order by side, price, ts desc, seq desc
    ),
    level as (
        select 1 as side, price, size from unnest(b.bid_prices, b.bid_sizes) as bids (price, size)
        where not exists (select from latest where latest.side = 1 and latest.price = bids.price)
        union all
        select -1, price, size from unnest(b.ask_prices, b.ask_sizes) as asks (price, size)
        where not exists (select from latest where latest.side = -1 and latest.price = asks.price)
        union all
        select side, price, size from latest where size > 0
    )
    select newest.ts, newest.hash, (select max(seq) from recent) as seq, sides.*
    from (select ts, hash from recent order by ts desc, seq desc limit 1) as newest
    cross join (
        select
            coalesce(array_agg(price order by price desc) filter (where side = 1), '{}') as bid_prices,
            coalesce(array_agg(size order by price desc) filter (where side = 1), '{}') as bid_sizes,
            coalesce(array_agg(price order by price) filter (where side = -1), '{}') as ask_prices,
            coalesce(array_agg(size order by price) filter (where side = -1), '{}') as ask_sizes
        from level
    ) as sides
) as changed on true;

-- Order books as the API shows them: of active markets, while they agree with the exchange's own best prices and the feed is alive.
create or replace view book_records as
select
    b.market_key, b.outcome,
    (
        select row_to_json(r)
        from (
            select
                m.market_id,
                b.outcome,
                m.token_ids[b.outcome + 1] as token_id,
                coalesce(bids.levels, '[]') as bids,
                coalesce(asks.levels, '[]') as asks,
                as_number(b.bid_prices[1]) as best_bid,
                as_number(b.ask_prices[1]) as best_ask,
                as_number(b.bid_prices[1]::bigint + b.ask_prices[1]) / 2 as mid,
                as_number(b.ask_prices[1] - b.bid_prices[1]) as spread,
                as_number(div(bids.worth + asks.worth, 1000000)::bigint) as depth_usd,
                as_number(b.tick_size) as tick_size,
                nullif(encode(b.hash, 'hex'), '') as hash,
                b.seq::text as seq,
                as_ms(b.ts) as ts
        ) as r
    ) as record
from book_current b
join markets m using (market_key)
cross join lateral (
    select
        json_agg((select l from (select as_number(price) as price, as_number(size) as size) as l)) as levels,
        coalesce(sum(price::numeric * size), 0) as worth
    from unnest(b.bid_prices, b.bid_sizes) as level (price, size)
) as bids
cross join lateral (
    select
        json_agg((select l from (select as_number(price) as price, as_number(size) as size) as l)) as levels,
        coalesce(sum(price::numeric * size), 0) as worth
    from unnest(b.ask_prices, b.ask_sizes) as level (price, size)
) as asks
where m.status = 'ACTIVE' and b.verified and (select alive from alive_feed);

create or replace view analytics.books as
select
    m.market_id, m.slug, b.outcome, m.outcomes[b.outcome + 1] as outcome_name, l.side, l.level,
    l.price * 0.000001 as price, l.size * 0.000001 as size, b.ts
from book_current b
join markets m using (market_key)
cross join lateral (
    select 'bid' as side, level, price, size from unnest(b.bid_prices, b.bid_sizes) with ordinality as bids (price, size, level)
    union all
    select 'ask', level, price, size from unnest(b.ask_prices, b.ask_sizes) with ordinality as asks (price, size, level)
) as l
where b.verified;
