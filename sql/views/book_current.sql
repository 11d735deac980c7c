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
