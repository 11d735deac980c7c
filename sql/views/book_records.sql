-- Order books as the API shows them: of active markets, while they agree with the exchange's own best prices and the feed is alive.
create view book_records as
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
where m.status = 'ACTIVE' and b.verified and m.exchange = any ((select live_exchanges())::text[]);
