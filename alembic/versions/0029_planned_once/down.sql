create or replace view market_records as
select
    market_key, market_id, gamma_id, slug, question, status, exchange, event_id, event_title, category, series, tags, end_time, created_at,
    (
        select row_to_json(r)
        from (
            select
                market_id,
                slug,
                question,
                status,
                exchange,
                event_id,
                category,
                series,
                tags,
                outcomes,
                token_ids,
                array(select as_number(price) from unnest(outcome_prices) as o (price)) as outcome_prices,
                as_unix(start_time) as start_time,
                as_unix(end_time) as end_time,
                as_unix(created_at) as created_at,
                as_unix(resolved_at) as resolved_at,
                winning_outcome,
                as_number(volume_usd) as volume_usd,
                coalesce(
                    (select as_number(a.value_24h) from market_activity a where a.market_key = markets.market_key),
                    case when exchange = any (array(  -- nothing is known of one that is not recorded
                        select feeds.exchange from exchange_feeds() feeds join stage_clocks using (stage) where not detail ? 'off'
                    )) then 0 end
                ) as volume_24h_usd,
                as_number(volume_24h_usd) as exchange_volume_24h_usd,
                as_number(liquidity_usd) as liquidity_usd,
                neg_risk,
                image,
                url,
                as_unix(updated_at) as updated_at,
                source
        ) as r
    ) as record
from markets;

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
                coalesce((select as_number(a.value_24h) from market_activity a where a.market_key = p.market_key), 0) as volume_24h_usd,
                as_ms(p.ts) as ts,
                greatest(0, as_ms(now()) - as_ms(p.ts)) as age_ms
        ) as r
    ) as record
from live_prices p
join markets m using (market_key)
join live_books b on b.market_key = p.market_key and b.outcome = p.outcome
where m.status = 'ACTIVE' and b.verified and m.exchange = any (array(select exchange from alive_exchanges));

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
where m.status = 'ACTIVE' and b.verified and m.exchange = any (array(select exchange from alive_exchanges));

drop function live_exchanges();

drop function enabled_exchanges();

create or replace function recorded_since(exchange text) returns timestamptz
language sql stable parallel safe
as $$
    select coalesce(
        (
            select to_timestamp((value #>> '{}')::bigint / 1000.0)
            from settings
            where name = own('recorded_since', exchange)
        ),
        (
            with recursive feeds (feed) as (  -- by steps through the index: few feeds have millions of rows
                (select feed from feed_stats order by feed limit 1)
                union all
                select (select f.feed from feed_stats f where f.feed > feeds.feed order by f.feed limit 1)
                from feeds
                where feed is not null
            )
            select min(since)
            from (
                select shards, max(first) as since
                from (
                    select
                        coalesce(substring(feed from '/\d+of(\d+)$')::int, 1) as shards,
                        (select s.ts from feed_stats s where s.feed = feeds.feed and s.messages > 0 order by s.ts limit 1) as first
                    from feeds
                    where feed = exchange or starts_with(feed, exchange || '/')
                ) as firsts
                group by shards
                having count(first) = shards
            ) as begun
        )
    );
$$;
