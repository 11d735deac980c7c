-- Order books as the API shows them. One that disagrees with the exchange's own best prices is not shown.
create view book_records as
select
    b.market_key, b.outcome,
    json_build_object(
        'market_id', m.market_id,
        'outcome', b.outcome,
        'token_id', m.token_ids[b.outcome + 1],
        'bids', coalesce(bids.levels, '[]'),
        'asks', coalesce(asks.levels, '[]'),
        'best_bid', as_number(b.bid_prices[1]),
        'best_ask', as_number(b.ask_prices[1]),
        'mid', as_number(b.bid_prices[1]::bigint + b.ask_prices[1]) / 2,
        'spread', as_number(b.ask_prices[1] - b.bid_prices[1]),
        'depth_usd', coalesce(bids.usd, 0) + coalesce(asks.usd, 0),
        'tick_size', as_number(b.tick_size),
        'hash', nullif(encode(b.hash, 'hex'), ''),
        'seq', b.seq::text,
        'ts', as_ms(b.ts)
    ) as record
from live_books b
join markets m using (market_key)
cross join lateral (
    select json_agg(json_build_object('price', as_number(price), 'size', as_number(size)) order by place) as levels,
           as_number(div(sum(price::numeric * size), 1000000)::bigint) as usd
    from unnest(b.bid_prices, b.bid_sizes) with ordinality as l (price, size, place)
) as bids
cross join lateral (
    select json_agg(json_build_object('price', as_number(price), 'size', as_number(size)) order by place) as levels,
           as_number(div(sum(price::numeric * size), 1000000)::bigint) as usd
    from unnest(b.ask_prices, b.ask_sizes) with ordinality as l (price, size, place)
) as asks
where b.verified;
