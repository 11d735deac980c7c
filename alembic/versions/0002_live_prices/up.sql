-- Whether what is live can be relied on: the feed's leader gave a sign of life within ten seconds, and nothing that it heard waits to be
-- written, or what it has written is not stale. A quiet exchange leaves nothing waiting. (Its name sorts before those of the views that need it.)
create view alive_feed as
select
    coalesce(
        beat_at > now() - interval '10 seconds'
        and (
            detail ->> 'backlog_events' = '0'
            or last_data_at > now() - make_interval(
                secs => coalesce(jsonb_path_query_first(fail.value, 'strict $ ? (@ >= 1 && @ <= 604800)')::int, fail_after_s)
            )
        ),
        false
    ) as alive
from stage_clocks
left join settings as fail on fail.name = 'parameters.ingestion_fail_after_s'
where stage = 'ingestion';

-- Live prices as the API shows them: of active markets, while the book agrees with the exchange and the feed is alive.
create or replace view price_records as
select
    p.market_key, p.outcome,
    (
        select row_to_json(r)
        from (
            select
                m.market_id,
                p.outcome,
                m.token_ids[p.outcome + 1] as token_id,
                as_number(p.mid) as mid,
                as_number(p.bid) as bid,
                as_number(p.ask) as ask,
                as_number(p.ask - p.bid) as spread,
                as_number(p.bid_size) as bid_size,
                as_number(p.ask_size) as ask_size,
                as_number(p.last) as last,
                as_ms(p.last_ts) as last_ts,
                (select as_number(sum(value_usd)::bigint) from market_stats_24h s where s.market_key = p.market_key) as volume_24h_usd,
                as_ms(p.ts) as ts,
                greatest(0, as_ms(now()) - as_ms(p.ts)) as age_ms
        ) as r
    ) as record
from live_prices p
join markets m using (market_key)
join live_books b on b.market_key = p.market_key and b.outcome = p.outcome
where m.status = 'ACTIVE' and b.verified and (select alive from alive_feed);

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
from live_books b
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
